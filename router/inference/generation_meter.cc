#include "router/inference/generation_meter.h"

#include <algorithm>
#include <utility>

#include "common/metrics/router_metrics.h"

namespace levin {
namespace {

double Seconds(Duration time) { return std::chrono::duration<double>(time).count(); }
double Seconds(int64_t microseconds) { return static_cast<double>(microseconds) * 1e-6; }

FinishLabel LabelFor(ReplyFinish reason) {
  switch (reason) {
    case ReplyFinish::kStop:
      return FinishLabel::kStop;
    case ReplyFinish::kLength:
      return FinishLabel::kLength;
    case ReplyFinish::kToolCalls:
      return FinishLabel::kToolCalls;
    case ReplyFinish::kCancelled:
      return FinishLabel::kCancelled;
  }
  return FinishLabel::kError;
}

FinishLabel LabelFor(const Status& status) {
  if (status.code() == Code::kCancelled) return FinishLabel::kCancelled;
  if (status.code() == Code::kDeadlineExceeded) return FinishLabel::kDeadline;
  return FinishLabel::kError;
}

CachedPart PartOf(int64_t cached, int64_t prompt) {
  if (cached <= 0) return CachedPart::kNone;
  return cached < prompt ? CachedPart::kPart : CachedPart::kFull;
}

}  // namespace

void GenerationMeter::Admitted(int64_t cached_tokens, TimePoint now) {
  admitted_ = true;
  cached_tokens_ = cached_tokens;
  if (metrics_ == nullptr) return;
  metrics_->queue_seconds(RequestClass::kDefault).Observe(Seconds(now - accepted_));
}

void GenerationMeter::Tokens(int64_t count, TimePoint now) {
  const bool first = !std::exchange(any_token_, true);
  const Duration gap = now - std::exchange(last_token_, now);
  if (metrics_ == nullptr || count <= 0) return;
  if (first) {
    metrics_->ttft(PartOf(cached_tokens_, prompt_tokens_)).Observe(Seconds(now - accepted_));
    return;
  }
  longest_gap_ = std::max(longest_gap_, gap);
  // Tokens that came at once share the time since the last ones.
  for (int64_t i = 0; i < count; ++i) {
    metrics_->itl().Observe(Seconds(gap) / static_cast<double>(count));
  }
}

void GenerationMeter::Finished(ReplyFinish reason, const Usage& usage, int64_t output_tokens) {
  if (metrics_ == nullptr) return;
  metrics_->finish(LabelFor(reason)).Add();
  End(usage, output_tokens);
}

void GenerationMeter::Failed(const Status& status, const Usage& usage, int64_t output_tokens) {
  if (metrics_ == nullptr) return;
  metrics_->finish(LabelFor(status)).Add();
  if (!admitted_ && status.code() != Code::kCancelled) CountRejection(metrics_, status);
  End(usage, output_tokens);
}

void GenerationMeter::ClientLeft() {
  if (metrics_ == nullptr) return;
  const Phase phase = any_token_ ? Phase::kDecode : admitted_ ? Phase::kPrefill : Phase::kQueued;
  metrics_->client_disconnects(phase).Add();
}

void GenerationMeter::End(const Usage& usage, int64_t output_tokens) {
  if (!admitted_) return;  // nothing was computed
  const auto prompt = static_cast<double>(prompt_tokens_);
  const auto output = static_cast<double>(output_tokens);
  const auto cached = static_cast<double>(cached_tokens_);
  metrics_->prompt_tokens().Observe(prompt);
  metrics_->output_tokens().Observe(output);
  metrics_->cached_tokens().Observe(cached);
  metrics_->tokens(TokenKind::kPrompt).Add(prompt);
  metrics_->tokens(TokenKind::kOutput).Add(output);
  metrics_->tokens(TokenKind::kCached).Add(cached);
  if (any_token_) metrics_->stream_stall().Observe(Seconds(longest_gap_));
  if (usage.prefill_us > 0) metrics_->prefill_seconds().Observe(Seconds(usage.prefill_us));
  if (usage.decode_us > 0) metrics_->decode_seconds().Observe(Seconds(usage.decode_us));
}

void CountRejection(const RouterMetrics* metrics, const Status& status) {
  if (metrics == nullptr) return;
  metrics->rejections(ToRejectReason(status.reason()), RequestClass::kDefault).Add();
}

}  // namespace levin
