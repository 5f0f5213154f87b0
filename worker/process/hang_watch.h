// Hung: a step is under way (or work waits) and the counters have not moved for max(5 s, 10 x the
// longest predicted step). Busy is not hung: chunks bound every step (protocol.md 7). Pure; one
// thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/base/clock.h"
#include "common/rpc/limits.h"

namespace levin {

class HangWatch final {
 public:
  // predicted_step: of the largest plan, from the warm-up.
  explicit HangWatch(Duration predicted_step)
      : limit_(std::max<Duration>(std::chrono::milliseconds(kHangMs), 10 * predicted_step)) {}

  bool Hung(uint64_t begun, uint64_t done, bool has_work, TimePoint now) {
    const bool moved = begun != begun_ || done != done_;
    const bool idle = begun == done && !has_work;
    // A gap between two calls is a stall of our own, not of the engine.
    const bool stalled = seen_ && now - last_call_ > std::chrono::milliseconds(kSuspectMs);
    if (moved || idle || stalled || !seen_) since_ = now;
    begun_ = begun;
    done_ = done;
    seen_ = true;
    last_call_ = now;
    return now - since_ > limit_;
  }
  // A rank is silent: whether it is lost is decided by the heartbeats' limit, not by this one, and
  // when it comes back the step has its whole time again.
  void Excuse(TimePoint now) { since_ = now; }
  Duration limit() const { return limit_; }

 private:
  const Duration limit_;
  uint64_t begun_ = 0, done_ = 0;
  bool seen_ = false;
  TimePoint since_, last_call_;
};

}  // namespace levin
