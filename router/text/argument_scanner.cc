#include "router/text/argument_scanner.h"

#include "router/text/utf8.h"

namespace levin {
namespace {

bool IsSurrogate(uint32_t unit, uint32_t first) { return unit >= first && unit < first + 0x400; }

// What may follow a number or a word.
bool EndsWord(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == ',' || c == '}' || c == ']' ||
         c == ')';
}

}  // namespace

Scan StringScanner::Step(char c, std::string& out) {
  switch (state_) {
    case State::kText:
      if (c == '\\') {
        state_ = State::kEscape;
        return Scan::kMore;
      }
      if (high_ != 0) AppendUtf8(kReplacement, out);
      high_ = 0;
      if (c == '"') return Scan::kDone;
      out += c;
      return Scan::kMore;
    case State::kEscape:
      if (c == 'u') {
        state_ = State::kHex;
        unit_ = 0;
        digits_ = 0;
        return Scan::kMore;
      }
      if (high_ != 0) AppendUtf8(kReplacement, out);
      high_ = 0;
      state_ = State::kText;
      switch (c) {
        case 'b':
          out += '\b';
          break;
        case 'f':
          out += '\f';
          break;
        case 'n':
          out += '\n';
          break;
        case 'r':
          out += '\r';
          break;
        case 't':
          out += '\t';
          break;
        case '"':
        case '\\':
        case '/':
          out += c;
          break;
        default:
          return Scan::kBroken;
      }
      return Scan::kMore;
    case State::kHex: {
      const char lower = static_cast<char>(c | 0x20);
      const int digit = c >= '0' && c <= '9'           ? c - '0'
                        : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10
                                                       : -1;
      if (digit < 0) return Scan::kBroken;
      unit_ = unit_ << 4 | static_cast<uint32_t>(digit);
      if (++digits_ == 4) EndUnit(out);
      return Scan::kMore;
    }
  }
  return Scan::kBroken;
}

void StringScanner::EndUnit(std::string& out) {
  state_ = State::kText;
  const bool low = IsSurrogate(unit_, 0xDC00);
  if (high_ != 0 && low) {
    AppendUtf8(0x10000 + ((high_ - 0xD800) << 10) + (unit_ - 0xDC00), out);
    high_ = 0;
    return;
  }
  if (high_ != 0) AppendUtf8(kReplacement, out);
  high_ = IsSurrogate(unit_, 0xD800) ? unit_ : 0;
  if (high_ == 0) AppendUtf8(low ? kReplacement : char32_t{unit_}, out);
}

bool ArgumentScanner::Begins(char c) {
  return c == '{' || c == '[' || c == '"' || c == '-' || (c >= '0' && c <= '9') || c == 't' ||
         c == 'f' || c == 'n';
}

Scan ArgumentScanner::Step(char c, std::string& out) {
  switch (state_) {
    case State::kStart:
      if (!Begins(c)) return Scan::kBroken;
      if (c == '"') {
        state_ = State::kString;
        return Scan::kMore;
      }
      if (c == '{' || c == '[') {
        state_ = State::kNested;
        return StepNested(c, out);
      }
      state_ = c == 'n' ? State::kNull : State::kWord;
      out += c == 'n' ? std::string_view("{}") : std::string_view(&c, 1);
      return Scan::kMore;
    case State::kNested:
      return StepNested(c, out);
    case State::kString: {
      const size_t before = out.size();
      const Scan scan = string_.Step(c, out);
      if (out.size() > before) empty_ = false;
      if (scan == Scan::kDone && empty_) out += "{}";
      return scan;
    }
    case State::kWord:
    case State::kNull:
      if (EndsWord(c)) return Scan::kDoneBefore;
      if (c == '<' || c == '"' || c == '{' || c == '[') return Scan::kBroken;
      if (state_ == State::kWord) out += c;
      return Scan::kMore;
  }
  return Scan::kBroken;
}

Scan ArgumentScanner::StepNested(char c, std::string& out) {
  if (quoted_) {
    out += c;
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      quoted_ = false;
    }
    return Scan::kMore;
  }
  if (c == '<') return Scan::kBroken;
  out += c;
  if (c == '"') quoted_ = true;
  if (c == '{' || c == '[') ++depth_;
  if (c == '}' || c == ']') --depth_;
  return depth_ == 0 ? Scan::kDone : Scan::kMore;
}

}  // namespace levin
