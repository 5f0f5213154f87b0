#pragma once

#include "common/base/clock.h"

namespace levin {

// Stands still until Advance. One thread.
class FakeClock final : public Clock {
 public:
  TimePoint Now() const override { return now_; }
  int64_t UnixMs() const override {
    return 1'700'000'000'000 + std::chrono::duration_cast<std::chrono::milliseconds>(now_.time_since_epoch()).count();
  }
  void Advance(Duration by) { now_ += by; }

 private:
  TimePoint now_ = TimePoint() + std::chrono::hours(1);
};

}  // namespace levin
