// ```typescript, functions.NAME(JSON) a line, ```: text.md 8.2. A call is committed where its
// arguments begin, so a block that is open always has one.
#include <optional>
#include <string>
#include <utility>

#include "router/text/argument_scanner.h"
#include "router/text/buffered_tool_parser.h"
#include "router/text/markers.h"
#include "router/text/tool_parser.h"

namespace levin {
namespace {

constexpr std::string_view kFence = "```";
constexpr std::string_view kLanguage = "typescript";
constexpr std::string_view kFunctions = "functions.";
constexpr size_t kNameBytesMax = 256;
constexpr size_t kGapBytesMax = 64;  // of a language, of blanks in a header

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-' || static_cast<unsigned char>(c) >= 0x80;
}

// The front of a text against the head of a call, up to where its arguments begin.
enum class Match : uint8_t { kNo, kMaybe, kYes };
class Head final {
 public:
  explicit Head(std::string_view text) : text_(text) {}

  size_t end() const { return pos_; }  // kYes: where the arguments begin
  const std::string& name() const { return name_; }

  // ```LANGUAGE, end of line. Any word where the special token said that a call follows.
  Match Fence(bool any_language) {
    if (const Match match = Word(kFence); match != Match::kYes) return match;
    const size_t begin = pos_;
    while (!done() && IsNameByte(text_[pos_]) && pos_ - begin <= kGapBytesMax) ++pos_;
    const std::string_view language = text_.substr(begin, pos_ - begin);
    if (!any_language && language != kLanguage) {
      return done() && MayBecome(language, kLanguage) ? Match::kMaybe : Match::kNo;
    }
    while (!done() && (text_[pos_] == ' ' || text_[pos_] == '\t') &&
           pos_ - begin <= 2 * kGapBytesMax)
      ++pos_;
    if (!done() && text_[pos_] == '\r') ++pos_;
    if (done()) return Match::kMaybe;
    return text_[pos_++] == '\n' ? Match::kYes : Match::kNo;
  }

  // functions.NAME( and the first byte of a value or ')'.
  Match Call() {
    if (const Match match = Word(kFunctions); match != Match::kYes) return match;
    const size_t begin = pos_;
    while (!done() && IsNameByte(text_[pos_]) && pos_ - begin <= kNameBytesMax) ++pos_;
    if (done()) return Match::kMaybe;
    name_ = text_.substr(begin, pos_ - begin);
    if (name_.empty() || text_[pos_++] != '(') return Match::kNo;
    const size_t open = pos_;
    while (!done() && IsBlank(text_[pos_]) && pos_ - open <= kGapBytesMax) ++pos_;
    if (done()) return Match::kMaybe;
    return text_[pos_] == ')' || ArgumentScanner::Begins(text_[pos_]) ? Match::kYes : Match::kNo;
  }

 private:
  bool done() const { return pos_ == text_.size(); }
  Match Word(std::string_view word) {
    if (text_.substr(pos_).starts_with(word)) {
      pos_ += word.size();
      return Match::kYes;
    }
    return MayBecome(text_.substr(pos_), word) ? Match::kMaybe : Match::kNo;
  }

  std::string_view text_;
  size_t pos_ = 0;
  std::string name_;
};

class Text01ToolParser final : public BufferedToolParser {
 public:
  explicit Text01ToolParser(ReplyWriter& out) : BufferedToolParser(out) {}

  void OnFunctionCall() override {
    if (state_ == State::kOutside &&
        buffer_.find_first_not_of(" \n\r\t\v\f") != std::string::npos) {
      out_.Content(std::exchange(buffer_, {}));  // the beginning of a fence that ended
    }
    if (state_ == State::kOther) out_.Aside(std::exchange(tail_, {}));
    if (state_ != State::kOutside && state_ != State::kAfterToken) buffer_.clear();
    blanks_ = 0;
    drop_blanks_ = false;
    state_ = State::kAfterToken;
  }

  void Flush() override {
    RunToEnd();
    const bool cut_fence = state_ == State::kBetween || state_ == State::kOther;
    if (!cut_fence || !MayBecome(buffer_, kFence)) out_.Content(buffer_);
    buffer_.clear();
  }
  bool in_block() const override { return state_ != State::kOutside; }

 private:
  enum class State : uint8_t {
    kOutside,
    kAfterToken,
    kArguments,
    kAfterArguments,
    kBetween,
    kOther
  };

  bool Advance() override {
    switch (state_) {
      case State::kOutside:
        return Outside();
      case State::kAfterToken:
        return AfterToken();
      case State::kArguments:
        return Arguments();
      case State::kAfterArguments:
        return AfterArguments();
      case State::kBetween:
        return Between();
      case State::kOther:
        return Other();
    }
    return false;
  }

  bool waits(Match match) const { return match == Match::kMaybe && !final_; }

  bool Outside() {
    if (drop_blanks_) {
      pos_ = SkipBlanks(pos_);
      if (pos_ == buffer_.size()) return false;
      drop_blanks_ = false;
    }
    if (blanks_ == 0) {
      size_t end = pos_;
      while (end < buffer_.size() && !IsBlank(buffer_[end]) && buffer_[end] != '`') ++end;
      out_.Content(rest().substr(0, end - pos_));
      pos_ = end;
    }
    const size_t fence = SkipBlanks(pos_ + std::exchange(blanks_, 0));
    if (fence == buffer_.size()) return Wait(fence);
    Head head(std::string_view(buffer_).substr(fence));
    Match match = head.Fence(false);
    if (match == Match::kYes) match = head.Call();
    if (waits(match)) return Wait(fence);
    if (match == Match::kYes) return Commit(head, fence, true);
    return Release(buffer_[fence] == '`' ? fence + 1 : fence);
  }

  // A fence with any word, or functions. at once; else the text is content.
  bool AfterToken() {
    const size_t begin = SkipBlanks(pos_ + std::exchange(blanks_, 0));
    if (begin == buffer_.size()) return Wait(begin);
    Head head(std::string_view(buffer_).substr(begin));
    Match match = head.Fence(true);
    const bool fenced = match == Match::kYes;
    if (fenced) match = head.Call();
    if (match == Match::kNo && !fenced) {
      head = Head(std::string_view(buffer_).substr(begin));
      match = head.Call();
    }
    if (waits(match)) return Wait(begin);
    if (match == Match::kYes) return Commit(head, begin, fenced);
    state_ = State::kOutside;
    return Release(begin + 1);
  }

  // Blanks up to `begin` are known; at the end there is nothing to wait for.
  bool Wait(size_t begin) {
    if (final_) return Release(buffer_.size());
    blanks_ = begin - pos_;
    return false;
  }
  bool Release(size_t end) {
    out_.Content(rest().substr(0, end - pos_));
    pos_ = end;
    return true;
  }

  // `head` was matched at `begin`; the blanks before it are kept aside.
  bool Commit(const Head& head, size_t begin, bool fenced) {
    out_.Aside(rest().substr(0, begin - pos_));
    fenced_ = fenced;
    StartCall(head, begin);
    return true;
  }

  void StartCall(const Head& head, size_t begin) {
    out_.StartCall(head.name());
    pos_ = begin + head.end();
    scanner_ = {};
    state_ = State::kArguments;
    if (buffer_[pos_] != ')') return;
    out_.Args("{}");
    state_ = State::kAfterArguments;
  }

  bool Arguments() {
    std::string arguments;
    Scan scan = Scan::kMore;
    while (pos_ < buffer_.size() && scan == Scan::kMore) {
      scan = scanner_.Step(buffer_[pos_], arguments);
      if (scan == Scan::kMore || scan == Scan::kDone) ++pos_;
    }
    out_.Args(arguments);
    if (scan == Scan::kDone || scan == Scan::kDoneBefore) state_ = State::kAfterArguments;
    if (scan == Scan::kBroken) state_ = State::kBetween;
    return true;
  }

  bool AfterArguments() {
    const char c = buffer_[pos_];
    if (!IsBlank(c)) state_ = State::kBetween;
    if (IsBlank(c) || c == ')') ++pos_;
    return true;
  }

  bool Between() {
    const char c = buffer_[pos_];
    if (IsBlank(c) || c == ',' || c == ';') {
      ++pos_;
      return true;
    }
    if (const std::optional<bool> found = NextCallOrFence()) return *found;
    tail_.clear();
    state_ = State::kOther;
    if (!fenced_) Close();
    return true;
  }

  // At a call or, in a fence, at its end. False in it: wait. Nothing: neither.
  std::optional<bool> NextCallOrFence() {
    Head head(rest());
    const Match match = head.Call();
    if (waits(match)) return false;
    if (match == Match::kYes) {
      StartCall(head, pos_);
      return true;
    }
    if (!fenced_) return std::nullopt;
    if (MayBecome(rest(), kFence)) return final_ ? std::nullopt : std::optional(false);
    if (!rest().starts_with(kFence)) return std::nullopt;
    pos_ += kFence.size();
    Close();
    return true;
  }

  void Close() {
    state_ = State::kOutside;
    drop_blanks_ = true;
  }

  bool Other() {
    if (IsBlank(buffer_[pos_])) {
      tail_ += buffer_[pos_++];
      return true;
    }
    if (!tail_.empty() && IsLineBreak(tail_.back())) {
      if (const std::optional<bool> found = NextCallOrFenceAside()) return *found;
    }
    if (final_ && MayBecome(rest(), kFence)) return false;
    size_t end = pos_ + 1;
    while (end < buffer_.size() && !IsBlank(buffer_[end])) ++end;
    out_.Content(std::exchange(tail_, {}));
    return Release(end);
  }

  std::optional<bool> NextCallOrFenceAside() {
    Head head(rest());
    const bool decided = head.Call() == Match::kYes || rest().starts_with(kFence);
    if (decided) out_.Aside(std::exchange(tail_, {}));
    return NextCallOrFence();
  }

  State state_ = State::kOutside;
  bool fenced_ = false;  // the block began with a fence
  ArgumentScanner scanner_;
  std::string tail_;  // whitespace at the end of other text
};

}  // namespace

std::unique_ptr<ToolParser> MakeText01ToolParser(ReplyWriter& out) {
  return std::make_unique<Text01ToolParser>(out);
}

}  // namespace levin
