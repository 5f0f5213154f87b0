// Is the other end of a Session alive? Judged by its silence alone: suspect, then lost. A wait in
// which this process itself did not run says nothing about the peer. Pure; one thread.
#pragma once

#include <algorithm>

#include "common/base/clock.h"

namespace levin {

class PeerHealth final {
 public:
  enum class State { kGood, kSuspect, kLost };

  // `suspect` < `lost`; the owner calls Judge at least every `rhythm`.
  PeerHealth(Duration suspect, Duration lost, Duration rhythm, TimePoint now)
      : suspect_(suspect), lost_(lost), rhythm_(rhythm), heard_(now), judged_(now) {}

  // The time of the latest frame; an older one than known changes nothing.
  void Heard(TimePoint when) { heard_ = std::max(heard_, when); }

  State Judge(TimePoint now) {
    if (now - judged_ > 2 * rhythm_) heard_ = std::max(heard_, now);  // we slept, not the peer
    judged_ = now;
    const Duration silence = now - heard_;
    if (silence >= lost_) return State::kLost;
    return silence >= suspect_ ? State::kSuspect : State::kGood;
  }

  // When the judgement changes next, if nothing is heard.
  TimePoint NextChange() const {
    return judged_ - heard_ >= suspect_ ? heard_ + lost_ : heard_ + suspect_;
  }

 private:
  const Duration suspect_, lost_, rhythm_;
  TimePoint heard_, judged_;
};

}  // namespace levin
