// One generation's sink: what the engine says becomes the events of a reply, exactly once each,
// with usage and times at the end.
#pragma once

#include <memory>
#include <vector>

#include "common/base/clock.h"
#include "router/dispatch/engine_client.h"
#include "router/inference/call_slot.h"
#include "router/inference/generation_meter.h"
#include "router/inference/reply_builder.h"
#include "router/inference/reply_event.h"
#include "router/inference/request_check.h"

namespace levin {

class ReplyStream final : public TokenSink {
 public:
  // Tokenizer, clock and metrics (may be null) must live longer.
  ReplyStream(const PreparedRequest& request, const Tokenizer& tokenizer, const Clock& clock,
              const RouterMetrics* metrics, std::unique_ptr<ReplySink> sink,
              std::shared_ptr<CallSlot> slot);

  void OnAdmitted(int64_t cached_tokens) override;
  void OnTokens(int64_t first_index, std::span<const SampledToken> tokens) override;
  void OnDone(Status status, FinishReason reason, const Usage& usage) override;

 private:
  void Complete(const Usage& usage, std::vector<ReplyEvent>& events);
  void Deliver(std::vector<ReplyEvent> events);

  const Clock& clock_;
  const TimePoint submitted_;
  const int64_t prompt_tokens_;
  const std::unique_ptr<ReplySink> sink_;
  const std::shared_ptr<CallSlot> slot_;
  ReplyBuilder builder_;
  GenerationMeter meter_;
  int64_t cached_tokens_ = 0;
  int64_t received_tokens_ = 0;
  int64_t first_token_us_ = 0;
  bool closed_ = false;  // Completed or Failed went out
};

}  // namespace levin
