// Counts one HTTP request of the API at its end: how it was answered, and how long that took.
#pragma once

#include <atomic>
#include <string_view>

#include "common/base/clock.h"

namespace levin {

class RouterMetrics;

// Any thread. Metrics (may be null: nothing is counted) and clock must live longer.
class RequestMeter final {
 public:
  RequestMeter(const RouterMetrics* metrics, const Clock& clock, std::string_view path);
  ~RequestMeter();  // an end that nobody told: the client left

  void StreamOpened();
  // The first end counts.
  void Answered(int status);
  void Broken();  // a stream that ended in an error

 private:
  enum class How { kOk, kLeft, kError };
  void End(int status, How how);

  const RouterMetrics* const metrics_;
  const Clock& clock_;
  const TimePoint accepted_;
  const int api_;  // of the metrics' label
  std::atomic<bool> streaming_ = false;
  std::atomic<bool> ended_ = false;
};

}  // namespace levin
