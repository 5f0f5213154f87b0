#include "router/inference/reply_stream.h"

#include <utility>

#include "common/base/check.h"

namespace levin {
namespace {

int64_t Microseconds(Duration time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
}

Status DeadlineStatus() {
  return {Code::kDeadlineExceeded, "DEADLINE_EXCEEDED", "the request's deadline passed"};
}

// What an engine's end without an answer means for the client.
Status EndStatus(FinishReason reason) {
  switch (reason) {
    case FinishReason::kCancelled:
      return {Code::kCancelled, "CANCELLED", "the request was cancelled"};
    case FinishReason::kDeadline:
      return DeadlineStatus();
    case FinishReason::kNone:
    case FinishReason::kError:
      return Internal("the generation ended without an answer");
    case FinishReason::kStop:
    case FinishReason::kLength:
      break;
  }
  return {};
}

}  // namespace

ReplyStream::ReplyStream(const PreparedRequest& request, const Tokenizer& tokenizer,
                         const Clock& clock, const RouterMetrics* metrics,
                         std::unique_ptr<ReplySink> sink, std::shared_ptr<CallSlot> slot)
    : clock_(clock),
      submitted_(clock.Now()),
      prompt_tokens_(request.prompt_tokens()),
      sink_(std::move(sink)),
      slot_(std::move(slot)),
      builder_(request, tokenizer),
      meter_(metrics, prompt_tokens_, submitted_) {}

void ReplyStream::OnAdmitted(int64_t cached_tokens) {
  if (closed_) return;
  cached_tokens_ = cached_tokens;
  meter_.Admitted(cached_tokens, clock_.Now());
  Deliver({StartedEvent{cached_tokens}});
}

void ReplyStream::OnTokens(int64_t first_index, std::span<const SampledToken> tokens) {
  CHECK_EQ(first_index, received_tokens_);
  received_tokens_ += static_cast<int64_t>(tokens.size());
  if (closed_ || tokens.empty()) return;
  const TimePoint now = clock_.Now();
  if (first_index == 0) first_token_us_ = Microseconds(now - submitted_);
  meter_.Tokens(static_cast<int64_t>(tokens.size()), now);

  std::vector<ReplyEvent> events;
  builder_.Push(tokens, events);
  // An end by id or length is the leader's too: its last word, with the times, is on its way. Of an
  // end by text it knows nothing yet, and the client shall not wait for it.
  const bool ends_here = builder_.ended_by_text();
  if (ends_here) Complete(Usage{.cached_tokens = cached_tokens_}, events);
  if (!events.empty()) Deliver(std::move(events));
  if (ends_here) slot_->Cancel(CancelReason::kStopString);
}

void ReplyStream::OnDone(Status status, FinishReason reason, const Usage& usage) {
  slot_->End();
  if (closed_) return;
  std::vector<ReplyEvent> events;
  if (!builder_.finished()) {
    if (status.ok()) status = EndStatus(reason);
    // The deadline may be found by either side; the client is told the same.
    if (status.code() == Code::kCancelled && slot_->reason() == CancelReason::kDeadline) {
      status = DeadlineStatus();
    }
    if (!status.ok()) {
      closed_ = true;
      if (slot_->reason() == CancelReason::kClientGone) meter_.ClientLeft();
      meter_.Failed(status, usage, builder_.completion_tokens());
      return Deliver({FailedEvent{std::move(status)}});
    }
    builder_.Finish(reason == FinishReason::kStop ? ReplyFinish::kStop : ReplyFinish::kLength,
                    events);
  }
  Complete(usage, events);
  Deliver(std::move(events));
}

void ReplyStream::Complete(const Usage& usage, std::vector<ReplyEvent>& events) {
  closed_ = true;
  meter_.Finished(builder_.finish_reason(), usage, builder_.completion_tokens());
  events.push_back(CompletedEvent{.usage = {.prompt_tokens = prompt_tokens_,
                                            .cached_tokens = usage.cached_tokens,
                                            .completion_tokens = builder_.completion_tokens(),
                                            .reasoning_tokens = builder_.reasoning_tokens()},
                                  .timings = {.queue_us = usage.queue_us,
                                              .prefill_us = usage.prefill_us,
                                              .first_token_us = first_token_us_,
                                              .decode_us = usage.decode_us}});
}

void ReplyStream::Deliver(std::vector<ReplyEvent> events) { sink_->OnEvents(std::move(events)); }

}  // namespace levin
