// Counts and times of one generation, into the router's metrics. Does nothing without metrics.
#pragma once

#include <cstdint>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/inference/generation.h"
#include "router/inference/reply_event.h"

namespace levin {

class RouterMetrics;

// One thread at a time; the metrics must live longer.
class GenerationMeter final {
 public:
  GenerationMeter(const RouterMetrics* metrics, int64_t prompt_tokens, TimePoint accepted)
      : metrics_(metrics), prompt_tokens_(prompt_tokens), accepted_(accepted) {}

  void Admitted(int64_t cached_tokens, TimePoint now);
  void Tokens(int64_t count, TimePoint now);

  // How it ended, once. `usage` is the engine's.
  void Finished(ReplyFinish reason, const Usage& usage, int64_t output_tokens);
  void Failed(const Status& status, const Usage& usage, int64_t output_tokens);
  void ClientLeft();

 private:
  void End(const Usage& usage, int64_t output_tokens);

  const RouterMetrics* const metrics_;
  const int64_t prompt_tokens_;
  const TimePoint accepted_;
  TimePoint last_token_{};
  Duration longest_gap_{};
  int64_t cached_tokens_ = 0;
  bool admitted_ = false;
  bool any_token_ = false;
};

// A request that was refused before it ran. `metrics` may be null.
void CountRejection(const RouterMetrics* metrics, const Status& status);

}  // namespace levin
