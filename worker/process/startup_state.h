// Where a worker's start-up is. Written by the main thread, read by health, metrics and the watch.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "common/metrics/metric_labels.h"

namespace levin {

struct StartupState {
  std::atomic<StartupPhase> phase{StartupPhase::kStarting};
  std::atomic<int64_t> bytes_done{0}, bytes_total{0};
};

constexpr std::string_view Name(StartupPhase phase) {
  return kStartupValues[static_cast<size_t>(phase)];
}

}  // namespace levin
