// Splits a reply at <think> ... </think> while it streams (text.md 7). Calls inside an open block
// are no calls unless the reply ends normally and the block never closed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "router/text/reply_writer.h"
#include "router/text/tool_parser.h"

namespace levin {

// Where the prompt leaves the reply: at its beginning, right behind an open <think> (newlines that
// follow go with the tag), or inside the block.
enum class ThinkStart : uint8_t { kNone, kAfterTag, kInside };

// One thread. `out` and `tools` (may be nullptr: no calls) must outlive it.
class ReasoningParser final {
 public:
  // `separate` false: the block stays in the content, verbatim, but is followed for the calls'
  // sake.
  ReasoningParser(bool separate, ThinkStart start, ReplyWriter& out, ToolParser* tools);

  void Push(std::string_view text);
  // A special token stands here: what has not begun with <think> now never will.
  void OnSpecial();
  // `cut`: the reply did not end of itself (length, cancel).
  void Flush(bool cut);

  // The block has not closed.
  bool inside() const { return state_ != State::kStart && state_ < State::kAfterClose; }
  // Bytes pushed up to the end of the closing tag; all of them while the block is open; 0 without.
  size_t reasoning_bytes() const;

 private:
  enum class State : uint8_t {
    kStart,
    kAfterOpen,
    kInside,
    kHeldCall,
    kAfterClose,
    kAnswer,
    kNeverOpened
  };

  void Run();
  bool Advance();
  bool Start();
  bool AfterOpen();
  bool Inside();
  bool HeldCall();
  bool AfterClose();
  bool NeverOpened();

  std::string_view rest() const { return std::string_view(buffer_).substr(pos_); }
  void Tag(size_t bytes);  // takes them: a tag, or newlines that go with one
  void Reasoning(std::string_view text);
  void Content(std::string_view text);
  void CloseBlock(size_t newlines, size_t tag);

  const bool separate_;
  ReplyWriter& out_;
  ToolParser* const tools_;
  State state_;
  bool final_ = false, cut_ = false;
  std::string buffer_;      // text that was not understood yet
  size_t pos_ = 0;          // in it, while Run runs
  size_t known_ = 0;        // of its front, what need not be looked at again
  bool line_start_ = true;  // kNeverOpened: the buffer begins a line
  size_t pushed_ = 0;       // bytes in all
  size_t closed_at_ = 0;    // bytes up to the end of the closing tag
};

}  // namespace levin
