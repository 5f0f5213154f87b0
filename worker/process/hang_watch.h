// Hung: a step is under way (or work waits) and the counters have not moved for max(5 s, 10 x its
// predicted time). Busy is not hung: chunks bound every step, but a chunk a million tokens into a
// prompt looks at a million positions and takes its time (protocol.md 7). Pure; one thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/base/clock.h"
#include "common/rpc/limits.h"

namespace levin {

class HangWatch final {
 public:
  // From the warm-up: a step of as many tokens as there may be, without the attention to what lies
  // before them; and the time of one pair of a token and a position that it looks at.
  HangWatch(Duration largest_step, double pair_ns)
      : largest_step_(largest_step), pair_ns_(pair_ns) {}

  // pairs: of the step begun last (StepProgress).
  bool Hung(uint64_t begun, uint64_t done, bool has_work, int64_t pairs, TimePoint now) {
    const bool moved = begun != begun_ || done != done_;
    const bool idle = begun == done && !has_work;
    // A gap between two calls is a stall of our own, not of the engine.
    const bool stalled = seen_ && now - last_call_ > std::chrono::milliseconds(kSuspectMs);
    if (moved || idle || stalled || !seen_) since_ = now;
    begun_ = begun;
    done_ = done;
    seen_ = true;
    last_call_ = now;
    return now - since_ > Limit(pairs);
  }
  // A rank is silent: whether it is lost is decided by the heartbeats' limit, not by this one, and
  // when it comes back the step has its whole time again.
  void Excuse(TimePoint now) { since_ = now; }
  Duration Limit(int64_t pairs) const {
    const std::chrono::duration<double, std::nano> attention(pair_ns_ * static_cast<double>(pairs));
    const Duration step = largest_step_ + std::chrono::duration_cast<Duration>(attention);
    return std::max<Duration>(std::chrono::milliseconds(kHangMs), 10 * step);
  }

 private:
  const Duration largest_step_;
  const double pair_ns_;
  uint64_t begun_ = 0, done_ = 0;
  bool seen_ = false;
  TimePoint since_, last_call_;
};

}  // namespace levin
