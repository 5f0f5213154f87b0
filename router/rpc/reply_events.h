// Reply events of one generation -> messages of the stream. Pure; one thread. `Event` is
// v1::GenerateEvent or v1::ChatEvent.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "common/base/types.h"
#include "levin/v1/inference.pb.h"
#include "router/inference/reply_event.h"
#include "router/rpc/inference_codec.h"
#include "router/text/tokenizer.h"

namespace levin {

// What is known of a reply before its first event.
struct ReplyFacts {
  ReplyForm form;
  std::string generation_id;
  std::string fingerprint;
  int64_t max_tokens = 0;
  std::vector<TokenId> prompt_ids;
  std::string echo;  // the prompt's text, where it was asked for
};

template <typename Event>
class ReplyEvents final {
 public:
  // The tokenizer must live longer.
  ReplyEvents(ReplyFacts facts, const Tokenizer& tokenizer);

  // Appends to `out`; merges into its last message where nothing is lost by that.
  void Push(const ReplyEvent& event, std::deque<Event>& out);

 private:
  void Start(int64_t cached_tokens, std::deque<Event>& out);
  void Text(TextKind kind, const std::string& text, std::span<const SampledToken> tokens,
            std::deque<Event>& out);
  void ToolStart(const ToolStartEvent& event, std::deque<Event>& out);
  void ToolArgs(const ToolArgsEvent& event, std::deque<Event>& out);
  void Finish(const ChoiceFinishedEvent& event, std::deque<Event>& out);
  void Complete(const CompletedEvent& event, std::deque<Event>& out);

  template <typename Message>
  void AddTokens(std::span<const SampledToken> tokens, Message& message) const;
  template <typename Delta>
  void AddUsage(Delta& delta) const;

  const ReplyFacts facts_;
  const Tokenizer& tokenizer_;
  bool started_ = false;
  v1::Usage usage_;    // so far
  v1::Choice choice_;  // form.whole
};

}  // namespace levin
