// Finds the tool calls in the content of a reply while it streams (text.md 8). What turns out not
// to be a call is content; only what can still become one is held.
#pragma once

#include <memory>
#include <string_view>

#include "router/text/reply_writer.h"

namespace levin {

enum class ToolFamily : uint8_t { kNone, kM1, kText01 };

// One thread; the writer must outlive it. Any split of the same text gives the same parts.
class ToolParser {
 public:
  virtual ~ToolParser() = default;

  virtual void Push(std::string_view text) = 0;
  // The special token <function_call> stands here.
  virtual void OnFunctionCall() = 0;
  // The reply is over, whatever the reason.
  virtual void Flush() = 0;
  // Inside what is, or may become, a block of calls.
  virtual bool in_block() const = 0;
};

std::unique_ptr<ToolParser> MakeM1ToolParser(ReplyWriter& out);      // <tool_calls>, 8.1
std::unique_ptr<ToolParser> MakeText01ToolParser(ReplyWriter& out);  // ```typescript, 8.2

}  // namespace levin
