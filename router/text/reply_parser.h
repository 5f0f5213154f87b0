// The text of a reply -> content, reasoning, tool calls: what chat deltas are made of. Text comes
// from TextStream; any split of it gives the same parts, and the whole reply is the joined stream.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/types.h"
#include "router/text/reasoning_parser.h"
#include "router/text/reply_writer.h"
#include "router/text/text_stream.h"
#include "router/text/tool_parser.h"

namespace levin {

struct ReplyParserOptions {
  bool reasoning = false;                // the <think> block goes into its own field
  bool include_reasoning = true;         // false: its text is dropped, its bytes still count
  ToolFamily tools = ToolFamily::kNone;  // kNone unless the request has tools and wants calls
  bool parallel_tool_calls = true;       // false: only the first call is kept
  ThinkStart start = ThinkStart::kNone;  // where the prompt ends
  std::optional<TokenId> function_call;  // the id of <function_call>, for kText01
  std::optional<uint64_t> id_seed;       // of the ids of calls; drawn at random when absent
};

// One thread.
class ReplyParser final {
 public:
  explicit ReplyParser(const ReplyParserOptions& options);
  ~ReplyParser();

  // `text` is whole characters; `specials` are those of the same TextStream::Piece.
  std::vector<ReplyPart> Push(std::string_view text, std::span<const SpecialEvent> specials = {});

  // Once, at the end. kStop: the end token, a stop id or a stop string.
  std::vector<ReplyPart> Flush(FinishReason reason);

  // After Flush. finish_reason is "tool_calls" (kLength stays "length").
  bool ends_in_tool_calls() const { return ended_ == FinishReason::kStop && writer_.calls() > 0; }
  // After Flush: message.content is null, not "".
  bool content_is_null() const;

  // Bytes of the text pushed so far that belong to the reasoning, tags included: a token counts
  // as one of the reasoning when its text begins before that. May still shrink while the reply
  // runs only from "all" to where the block closed. 0 with `reasoning` off.
  size_t reasoning_bytes() const;

 private:
  void Feed(std::string_view text);

  const ReplyParserOptions options_;
  ReplyWriter writer_;
  std::unique_ptr<ToolParser> tools_;
  std::optional<ReasoningParser> think_;
  FinishReason ended_ = FinishReason::kNone;
  bool cut_in_reasoning_ = false;
};

}  // namespace levin
