#include "router/text/reasoning_parser.h"

#include <algorithm>
#include <utility>

#include "router/text/markers.h"

namespace levin {
namespace {

constexpr std::string_view kOpen = "<think>";
constexpr std::string_view kClose = "</think>";
constexpr std::string_view kCalls = "<tool_calls>";

// Whether the text behind the tag of calls begins an object: whitespace, commas, '[' may stand
// between.
enum class Follows : uint8_t { kObject, kOther, kUnknown };
Follows BehindCallsTag(std::string_view text) {
  const size_t at = text.find_first_not_of(" \n\r\t\v\f,[");
  if (at == std::string_view::npos) return Follows::kUnknown;
  return text[at] == '{' ? Follows::kObject : Follows::kOther;
}

bool HoldsCall(std::string_view text) {
  ReplyWriter trial({});
  const auto parser = MakeM1ToolParser(trial);
  parser->Push(text);
  parser->Flush();
  return trial.calls() > 0;
}

}  // namespace

ReasoningParser::ReasoningParser(bool separate, ThinkStart start, ReplyWriter& out,
                                 ToolParser* tools)
    : separate_(separate),
      out_(out),
      tools_(tools),
      state_(start == ThinkStart::kNone       ? State::kStart
             : start == ThinkStart::kAfterTag ? State::kAfterOpen
                                              : State::kInside) {}

void ReasoningParser::Push(std::string_view text) {
  buffer_ += text;
  pushed_ += text.size();
  Run();
}

void ReasoningParser::OnSpecial() {
  if (state_ != State::kStart) return;
  state_ = State::kNeverOpened;
  known_ = 0;
  Run();
}

void ReasoningParser::Flush(bool cut) {
  final_ = true;
  cut_ = cut;
  Run();
}

size_t ReasoningParser::reasoning_bytes() const { return inside() ? pushed_ : closed_at_; }

void ReasoningParser::Run() {
  while (pos_ < buffer_.size() && Advance()) {
  }
  buffer_.erase(0, pos_);
  pos_ = 0;
}

bool ReasoningParser::Advance() {
  switch (state_) {
    case State::kStart:
      return Start();
    case State::kAfterOpen:
      return AfterOpen();
    case State::kInside:
      return Inside();
    case State::kHeldCall:
      return HeldCall();
    case State::kAfterClose:
      return AfterClose();
    case State::kNeverOpened:
      return NeverOpened();
    case State::kAnswer:
      Content(rest());
      pos_ = buffer_.size();
      return true;
  }
  return false;
}

bool ReasoningParser::Start() {
  size_t tag = pos_ + std::exchange(known_, 0);
  while (tag < buffer_.size() && IsBlank(buffer_[tag])) ++tag;
  const std::string_view behind = std::string_view(buffer_).substr(tag);
  if (behind.starts_with(kOpen)) {
    Tag(tag + kOpen.size() - pos_);
    state_ = State::kAfterOpen;
    return true;
  }
  if (!final_ && (behind.empty() || MayBecome(behind, kOpen))) {
    known_ = tag - pos_;
    return false;
  }
  state_ = State::kNeverOpened;
  return true;
}

bool ReasoningParser::AfterOpen() {
  size_t end = pos_;
  while (end < buffer_.size() && IsLineBreak(buffer_[end])) ++end;
  Tag(end - pos_);
  if (pos_ < buffer_.size()) state_ = State::kInside;
  return true;
}

// Everything is reasoning but newlines and what may become a tag behind them.
bool ReasoningParser::Inside() {
  if (known_ == 0) {
    size_t plain = pos_;
    while (plain < buffer_.size() && !IsLineBreak(buffer_[plain]) && buffer_[plain] != '<') ++plain;
    Reasoning(rest().substr(0, plain - pos_));
    pos_ = plain;
  }
  size_t tag = pos_ + std::exchange(known_, 0);
  while (tag < buffer_.size() && IsLineBreak(buffer_[tag])) ++tag;
  const std::string_view behind = std::string_view(buffer_).substr(tag);
  if (behind.starts_with(kClose)) {
    CloseBlock(tag - pos_, kClose.size());
    return true;
  }
  const bool calls = tools_ != nullptr && behind.starts_with(kCalls);
  const Follows follows = calls ? BehindCallsTag(behind.substr(kCalls.size())) : Follows::kOther;
  if (follows == Follows::kObject) {
    state_ = State::kHeldCall;
    known_ = tag - pos_;
    return true;
  }
  const bool may_go_on = behind.empty() || MayBecome(behind, kClose) ||
                         follows == Follows::kUnknown ||
                         (tools_ != nullptr && MayBecome(behind, kCalls));
  if (may_go_on && !final_) {
    known_ = tag - pos_;
    return false;
  }
  const size_t end = may_go_on ? buffer_.size() : behind.front() == '<' ? tag + 1 : tag;
  Reasoning(rest().substr(0, end - pos_));
  pos_ = end;
  return true;
}

// From a call on, with the newlines before it, until it is known whether the block closes.
bool ReasoningParser::HeldCall() {
  const size_t close = buffer_.find(kClose, pos_ + known_);
  if (close != std::string::npos) {
    size_t end = close;
    while (end > pos_ && IsLineBreak(buffer_[end - 1])) --end;
    Reasoning(rest().substr(0, end - pos_));
    pos_ = end;
    CloseBlock(close - end, kClose.size());
    return true;
  }
  if (!final_) {
    known_ = std::max(kClose.size() - 1, buffer_.size() - pos_) - (kClose.size() - 1);
    return false;
  }
  if (!cut_ && HoldsCall(rest())) {
    Content(rest());
  } else {
    Reasoning(rest());
  }
  pos_ = buffer_.size();
  return true;
}

void ReasoningParser::CloseBlock(size_t newlines, size_t tag) {
  closed_at_ = pushed_ - (buffer_.size() - pos_) + newlines + tag;
  Tag(newlines + tag);
  known_ = 0;
  state_ = State::kAfterClose;
}

bool ReasoningParser::AfterClose() {
  if (separate_ && IsLineBreak(buffer_[pos_])) {
    ++pos_;
    return true;
  }
  state_ = State::kAnswer;
  return true;
}

// The first line that is the closing tag and nothing else goes, its end with it. Not inside a block
// of calls: there it is an argument's.
bool ReasoningParser::NeverOpened() {
  const bool may_be_tag = separate_ && line_start_ && !(tools_ && tools_->in_block());
  if (may_be_tag && rest().starts_with(kClose)) {
    const std::string_view behind = rest().substr(kClose.size());
    const bool open = behind.empty() || behind == "\r";
    if (open && !final_) return false;
    if (behind.empty() || behind.starts_with("\n") || behind.starts_with("\r\n")) {
      pos_ += kClose.size() + (behind.empty() ? 0 : behind.front() == '\n' ? 1 : 2);
      state_ = State::kAnswer;
      return true;
    }
  } else if (may_be_tag && MayBecome(rest(), kClose) && !final_) {
    return false;
  }
  const size_t newline = buffer_.find('\n', pos_);
  const size_t end = newline == std::string::npos ? buffer_.size() : newline + 1;
  Content(rest().substr(0, end - pos_));
  line_start_ = newline != std::string::npos;
  pos_ = end;
  return true;
}

void ReasoningParser::Tag(size_t bytes) {
  if (!separate_) out_.Content(rest().substr(0, bytes));
  pos_ += bytes;
}

void ReasoningParser::Reasoning(std::string_view text) {
  separate_ ? out_.Reasoning(text) : out_.Content(text);
}

void ReasoningParser::Content(std::string_view text) {
  tools_ ? tools_->Push(text) : out_.Content(text);
}

}  // namespace levin
