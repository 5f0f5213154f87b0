#include "router/text/call_scanner.h"

#include <utility>

namespace levin {
namespace {

bool IsJsonSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

Scan CallScanner::Step(char c) {
  switch (state_) {
    case State::kStart:
      state_ = State::kBeforeKey;
      return c == '{' ? Scan::kMore : Scan::kBroken;
    case State::kBeforeKey:
      if (IsJsonSpace(c)) return Scan::kMore;
      if (c == '}' && !comma_) return Close();
      if (c != '"') return Scan::kBroken;
      key_.clear();
      string_ = {};
      state_ = State::kKey;
      return Scan::kMore;
    case State::kKey:
      return StepKey(c);
    case State::kBeforeColon:
      if (IsJsonSpace(c)) return Scan::kMore;
      state_ = State::kBeforeValue;
      return c == ':' ? Scan::kMore : Scan::kBroken;
    case State::kBeforeValue:
      return IsJsonSpace(c) ? Scan::kMore : BeginValue(c);
    case State::kValue:
      return StepValue(c);
    case State::kAfterValue:
      if (IsJsonSpace(c)) return Scan::kMore;
      if (c == '}') return Close();
      state_ = State::kBeforeKey;
      comma_ = true;
      return c == ',' ? Scan::kMore : Scan::kBroken;
  }
  return Scan::kBroken;
}

Scan CallScanner::StepKey(char c) {
  const Scan scan = string_.Step(c, key_);
  if (scan != Scan::kDone) return scan;
  state_ = State::kBeforeColon;
  // A repeated key counts as an unknown one.
  meaning_ = key_ == "name" && !named_                ? Meaning::kName
             : key_ == "arguments" && !has_arguments_ ? Meaning::kArguments
                                                      : Meaning::kOther;
  return Scan::kMore;
}

Scan CallScanner::BeginValue(char c) {
  state_ = State::kValue;
  string_ = {};
  value_ = {};
  if (meaning_ == Meaning::kName) return c == '"' ? Scan::kMore : Scan::kBroken;
  const Scan scan = StepValue(c);
  if (scan != Scan::kBroken && meaning_ == Meaning::kArguments) {
    has_arguments_ = true;
    committed_ = named_;
  }
  return scan;
}

Scan CallScanner::StepValue(char c) {
  if (meaning_ == Meaning::kName) {
    const Scan scan = string_.Step(c, name_);
    if (scan != Scan::kDone) return scan;
    if (name_.empty()) return Scan::kBroken;
    named_ = true;
    committed_ = has_arguments_;
    state_ = State::kAfterValue;
    return Scan::kMore;
  }
  ignored_.clear();
  const Scan scan = value_.Step(c, meaning_ == Meaning::kArguments ? arguments_ : ignored_);
  if (scan == Scan::kDone || scan == Scan::kDoneBefore) state_ = State::kAfterValue;
  if (scan == Scan::kDoneBefore) return Step(c);
  return scan == Scan::kDone ? Scan::kMore : scan;
}

Scan CallScanner::Close() {
  if (!named_) return Scan::kBroken;
  if (!has_arguments_) arguments_ = "{}";
  committed_ = true;
  return Scan::kDone;
}

std::string CallScanner::TakeArguments() {
  return committed_ ? std::exchange(arguments_, {}) : std::string();
}

}  // namespace levin
