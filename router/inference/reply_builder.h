// Drawn tokens of one choice -> reply events: end token, stop ids, stop strings, length, in that
// order for each token (api.md 10.4). Pure: no thread, no clock, no engine.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/types.h"
#include "common/inference/generation.h"
#include "router/inference/reply_event.h"
#include "router/inference/request_check.h"
#include "router/text/reply_parser.h"
#include "router/text/text_stream.h"

namespace levin {

class Tokenizer;

// One thread. The tokenizer must outlive it.
class ReplyBuilder final {
 public:
  ReplyBuilder(const PreparedRequest& request, const Tokenizer& tokenizer);

  // Appends the events of these tokens. Those behind the end are dropped: neither shown nor
  // counted.
  void Push(std::span<const SampledToken> tokens, std::vector<ReplyEvent>& out);
  // The leader ended it where no token says so (its own limit, or nothing was to be drawn).
  void Finish(ReplyFinish reason, std::vector<ReplyEvent>& out);

  bool finished() const { return finished_; }
  ReplyFinish finish_reason() const { return finish_reason_; }  // once finished
  // The leader does not know of the end: it has to be told.
  bool ended_by_text() const { return ended_by_text_; }
  int64_t completion_tokens() const { return completion_tokens_; }
  int64_t reasoning_tokens() const { return reasoning_tokens_; }  // once finished

 private:
  void PushOne(const SampledToken& token, std::vector<ReplyEvent>& out);
  void PushStopId(TokenId token, std::vector<ReplyEvent>& out);
  void Show(TextStream::Piece piece, std::vector<ReplyEvent>& out);
  void ShowParts(std::vector<ReplyPart> parts, std::vector<ReplyEvent>& out);
  void ShowText(TextKind kind, std::string text, std::vector<ReplyEvent>& out);
  void CountReasoning();
  void End(ChoiceFinishedEvent end, std::vector<ReplyEvent>& out);

  const std::optional<TokenId> eos_;
  const std::vector<TokenId> stop_ids_;
  const int64_t min_tokens_, max_tokens_;
  const bool include_stop_;
  const bool skip_special_tokens_;
  const Tokenizer& tokenizer_;
  TextStream text_;
  std::optional<ReplyParser> parser_;  // none: all text is content
  std::vector<SampledToken> unshown_;  // drawn, not in any event yet
  std::vector<size_t> text_begins_;    // [tokens] bytes of text before each; with a parser
  size_t text_bytes_ = 0;
  int64_t completion_tokens_ = 0;
  int64_t reasoning_tokens_ = 0;
  bool finished_ = false;
  ReplyFinish finish_reason_ = ReplyFinish::kStop;
  bool ended_by_text_ = false;
};

}  // namespace levin
