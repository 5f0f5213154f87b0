// Which ordinals are over, told to the leader as a level: "all up to the watermark are over, except
// these". Said again until the leader's FreedAck covers it, so that no notice can be lost.
// Plain state of one Session's router; the owner protects it. See ARCHITECTURE.md, "The Session".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "common/base/clock.h"

namespace levin {

struct FinishedSet {
  uint64_t watermark = 0;      // the highest ordinal ever submitted
  std::vector<uint64_t> live;  // the exceptions, ascending
  bool operator==(const FinishedSet&) const = default;
};

class FinishedLevel final {
 public:
  // `pace`: least time between two frames after a change; `repeat`: after which an uncovered level
  // is said again.
  FinishedLevel(Duration pace, Duration repeat) : pace_(pace), repeat_(repeat) {}

  void Submitted(uint64_t ordinal);             // higher than all before
  void Ended(uint64_t ordinal, TimePoint now);  // once per submitted ordinal
  // The leader's answer; true when it took something off. An ack older than another is harmless.
  bool Freed(uint64_t watermark, std::span<const uint64_t> live);
  // A new stream: the level, if there is one, is due at once.
  void Reopened() {
    changed_ = watermark_ > 0;
    last_sent_.reset();
  }

  // When Take would give something; nullopt: everything is covered.
  std::optional<TimePoint> Due() const;
  // The level, if it is due at `now`.
  std::optional<FinishedSet> Take(TimePoint now);

  uint64_t watermark() const { return watermark_; }
  const std::set<uint64_t>& live() const { return live_; }
  size_t unfreed() const { return unfreed_.size(); }  // over here, memory not known to be back
  // When the first of these ended; nullopt: there is none.
  std::optional<TimePoint> oldest_unfreed() const;

 private:
  const Duration pace_, repeat_;
  uint64_t watermark_ = 0;
  std::set<uint64_t> live_;
  std::map<uint64_t, TimePoint> unfreed_;  // with the time of the end
  bool changed_ = false;
  std::optional<TimePoint> last_sent_;
};

}  // namespace levin
