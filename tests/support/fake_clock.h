// A clock that stands until it is told. Any thread.
#pragma once

#include <atomic>
#include <chrono>

#include "common/base/clock.h"

namespace levin {

class FakeClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(std::chrono::milliseconds(now_ms_.load())); }
  int64_t UnixMs() const override { return now_ms_.load(); }
  void Advance(std::chrono::milliseconds by) { now_ms_ += by.count(); }

 private:
  std::atomic<int64_t> now_ms_ = 1'000'000;
};

}  // namespace levin
