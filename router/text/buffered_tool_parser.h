// What the tool parsers share: text is buffered until a state of theirs has understood it.
#pragma once

#include <string>
#include <string_view>

#include "router/text/markers.h"
#include "router/text/tool_parser.h"

namespace levin {

class BufferedToolParser : public ToolParser {
 public:
  void Push(std::string_view text) final {
    buffer_ += text;
    Run();
  }

 protected:
  explicit BufferedToolParser(ReplyWriter& out) : out_(out) {}

  // One step over buffer_ from pos_. False: what is left must wait for more text.
  virtual bool Advance() = 0;

  void RunToEnd() {
    final_ = true;
    Run();
  }

  std::string_view rest() const { return std::string_view(buffer_).substr(pos_); }
  size_t SkipBlanks(size_t pos) const {
    while (pos < buffer_.size() && IsBlank(buffer_[pos])) ++pos;
    return pos;
  }

  ReplyWriter& out_;
  bool final_ = false;        // no text comes any more
  std::string buffer_;        // text that was not understood yet
  size_t pos_ = 0;            // in it, while Advance runs
  size_t blanks_ = 0;         // how much of its front is known to be whitespace
  bool drop_blanks_ = false;  // whitespace behind a block goes

 private:
  void Run() {
    while (pos_ < buffer_.size() && Advance()) {
    }
    buffer_.erase(0, pos_);
    pos_ = 0;
  }
};

}  // namespace levin
