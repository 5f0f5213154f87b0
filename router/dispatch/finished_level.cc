#include "router/dispatch/finished_level.h"

#include <algorithm>

#include "common/base/check.h"

namespace levin {

void FinishedLevel::Submitted(uint64_t ordinal) {
  CHECK(ordinal > watermark_, ordinal, watermark_);
  watermark_ = ordinal;
  live_.insert(ordinal);
}

void FinishedLevel::Ended(uint64_t ordinal, TimePoint now) {
  CHECK(live_.erase(ordinal) == 1, "ordinal", ordinal);
  unfreed_.emplace(ordinal, now);
  changed_ = true;
}

bool FinishedLevel::Freed(uint64_t watermark, std::span<const uint64_t> live) {
  const size_t before = unfreed_.size();
  const auto end = unfreed_.upper_bound(watermark);
  for (auto it = unfreed_.begin(); it != end;) {
    const bool still_held = std::binary_search(live.begin(), live.end(), it->first);
    it = still_held ? std::next(it) : unfreed_.erase(it);
  }
  return unfreed_.size() != before;
}

std::optional<TimePoint> FinishedLevel::oldest_unfreed() const {
  std::optional<TimePoint> oldest;
  for (const auto& [ordinal, ended] : unfreed_) oldest = std::min(oldest.value_or(ended), ended);
  return oldest;
}

std::optional<TimePoint> FinishedLevel::Due() const {
  if (!changed_ && unfreed_.empty()) return std::nullopt;
  if (!last_sent_) return TimePoint::min();
  return *last_sent_ + (changed_ ? pace_ : repeat_);
}

std::optional<FinishedSet> FinishedLevel::Take(TimePoint now) {
  const std::optional<TimePoint> due = Due();
  if (!due || now < *due) return std::nullopt;
  changed_ = false;
  last_sent_ = now;
  return FinishedSet{watermark_, {live_.begin(), live_.end()}};
}

}  // namespace levin
