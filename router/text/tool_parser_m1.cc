// <tool_calls>, one JSON object a line, </tool_calls>: the states of text.md 8.1.
#include <string>
#include <utility>

#include "router/text/buffered_tool_parser.h"
#include "router/text/call_scanner.h"
#include "router/text/markers.h"
#include "router/text/tool_parser.h"

namespace levin {
namespace {

constexpr std::string_view kOpen = "<tool_calls>";
constexpr std::string_view kClose = "</tool_calls>";

class M1ToolParser final : public BufferedToolParser {
 public:
  explicit M1ToolParser(ReplyWriter& out) : BufferedToolParser(out) {}

  void OnFunctionCall() override {}
  void Flush() override {
    RunToEnd();
    End();
  }
  bool in_block() const override { return state_ != State::kOutside; }

 private:
  enum class State : uint8_t { kOutside, kOpened, kObject, kBetween, kOther };

  bool Advance() override {
    switch (state_) {
      case State::kOutside:
        return Outside();
      case State::kOpened:
        return Opened();
      case State::kObject:
        return Object();
      case State::kBetween:
        return Between();
      case State::kOther:
        return Other();
    }
    return false;
  }

  bool may_close() const { return !final_ && MayBecome(rest(), kClose); }

  // Content, up to whitespace that may stand before a tag.
  bool Outside() {
    if (drop_blanks_) {
      pos_ = SkipBlanks(pos_);
      if (pos_ == buffer_.size()) return false;
      drop_blanks_ = false;
    }
    size_t blank = pos_;
    if (blanks_ == 0) {
      while (blank < buffer_.size() && !IsBlank(buffer_[blank]) && buffer_[blank] != '<') ++blank;
      out_.Content(rest().substr(0, blank - pos_));
      pos_ = blank;
    }
    const size_t tag = SkipBlanks(pos_ + std::exchange(blanks_, 0));
    const std::string_view behind = std::string_view(buffer_).substr(tag);
    if (!final_ && (behind.empty() || MayBecome(behind, kOpen))) {
      blanks_ = tag - pos_;
      return false;
    }
    if (behind.starts_with(kOpen)) {
      space_.assign(buffer_, pos_, tag - pos_);
      raw_ = kOpen;
      other_.clear();
      has_call_ = false;
      pos_ = tag + kOpen.size();
      state_ = State::kOpened;
      return true;
    }
    const size_t end = behind.starts_with('<') ? tag + 1 : tag;
    out_.Content(rest().substr(0, end - pos_));
    pos_ = end;
    return true;
  }

  bool Opened() {
    const char c = buffer_[pos_];
    if (IsBlank(c) || c == ',' || c == '[') {
      raw_ += c;
      ++pos_;
      return true;
    }
    if (c == '{') return BeginObject();
    if (may_close()) return false;
    if (rest().starts_with(kClose)) {
      raw_ += kClose;
      pos_ += kClose.size();
    }
    ReleaseRaw();
    return true;
  }

  bool BeginObject() {
    call_ = {};
    object_.clear();
    state_ = State::kObject;
    return true;
  }

  bool Object() {
    Scan scan = Scan::kMore;
    while (pos_ < buffer_.size() && scan == Scan::kMore) {
      const char c = buffer_[pos_];
      const bool before = call_.committed();
      scan = call_.Step(c);
      if (call_.committed() && !before) Commit();
      if (scan == Scan::kBroken) break;
      if (!call_.committed()) object_ += c;
      ++pos_;
    }
    if (call_.committed()) out_.Args(call_.TakeArguments());
    if (scan == Scan::kMore) return true;
    if (call_.committed()) {
      state_ = State::kBetween;
      return true;
    }
    // No call: its text, and the line that it stands in.
    size_t end = object_.size();
    while (end > 0 && IsBlank(object_[end - 1])) --end;
    tail_ = object_.substr(end);
    object_.resize(end);
    AddOther(object_);
    state_ = State::kOther;
    return true;
  }

  // The first call of a block decides that it is one: tag and blanks go, other text is content.
  void Commit() {
    if (!has_call_) {
      has_call_ = true;
      out_.Aside(space_);
      size_t end = other_.size();
      while (end > 0 && IsBlank(other_[end - 1])) --end;
      out_.Content(std::string_view(other_).substr(0, end));
      if (end > 0) out_.Aside(std::string_view(other_).substr(end));
    }
    out_.StartCall(call_.name());
  }

  bool Between() {
    const char c = buffer_[pos_];
    if (IsBlank(c) || c == ',' || c == '[' || c == ']' || c == '}') {
      ++pos_;
      return true;
    }
    if (c == '{') return BeginObject();
    if (may_close()) return false;
    if (rest().starts_with(kClose)) return CloseBlock();
    tail_.clear();
    state_ = State::kOther;
    return true;
  }

  // Up to a line that begins with '{' or the closing tag.
  bool Other() {
    const char c = buffer_[pos_];
    if (IsBlank(c)) {
      tail_ += c;
      ++pos_;
      return true;
    }
    if (c == '{' && !tail_.empty() && IsLineBreak(tail_.back())) {
      KeepTailAside();
      return BeginObject();
    }
    if (may_close()) return false;
    if (rest().starts_with(kClose)) {
      if (has_call_) {
        KeepTailAside();
        return CloseBlock();
      }
      raw_ += std::exchange(tail_, {});
      raw_ += kClose;
      pos_ += kClose.size();
      ReleaseRaw();
      return true;
    }
    if (final_ && has_call_ && MayBecome(rest(), kClose)) return false;
    size_t end = pos_ + 1;
    while (end < buffer_.size() && !IsBlank(buffer_[end]) && buffer_[end] != '<') ++end;
    AddOther(std::exchange(tail_, {}));
    AddOther(rest().substr(0, end - pos_));
    pos_ = end;
    return true;
  }

  void AddOther(std::string_view text) {
    if (has_call_) return out_.Content(text);
    other_ += text;
    raw_ += text;
  }

  void KeepTailAside() {
    if (has_call_) {
      out_.Aside(tail_);
    } else {
      AddOther(tail_);
    }
    tail_.clear();
  }

  bool CloseBlock() {
    pos_ += kClose.size();
    state_ = State::kOutside;
    drop_blanks_ = true;
    return true;
  }

  // The block holds no call: as it came.
  void ReleaseRaw() {
    out_.Content(std::exchange(space_, {}) + std::exchange(raw_, {}));
    state_ = State::kOutside;
  }

  void End() {
    switch (state_) {
      case State::kOutside:
      case State::kBetween:  // a cut closing tag belongs to the block
        break;
      case State::kOpened:
        ReleaseRaw();
        break;
      case State::kObject:
        if (call_.committed()) break;
        if (has_call_) {
          out_.Content(object_);
        } else {
          raw_ += object_;
          ReleaseRaw();
        }
        break;
      case State::kOther:
        if (has_call_) break;
        raw_ += tail_;
        ReleaseRaw();
        break;
    }
  }

  State state_ = State::kOutside;
  // The block.
  std::string space_;  // before its tag
  std::string raw_;    // while it has no call: all of it, but for the object at work
  std::string other_;  // while it has no call: the text in it
  std::string tail_;   // whitespace at the end of other text
  bool has_call_ = false;
  CallScanner call_;
  std::string object_;  // its bytes while it is not committed
};

}  // namespace

std::unique_ptr<ToolParser> MakeM1ToolParser(ReplyWriter& out) {
  return std::make_unique<M1ToolParser>(out);
}

}  // namespace levin
