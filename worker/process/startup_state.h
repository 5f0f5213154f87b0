// Where a worker's start-up is. Written by the main thread, read by health and metrics.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace levin {

enum class StartupPhase : uint8_t { kJoining, kLoading, kWarming, kReady };

constexpr std::string_view Name(StartupPhase phase) {
  switch (phase) {
    case StartupPhase::kJoining: return "joining";
    case StartupPhase::kLoading: return "loading";
    case StartupPhase::kWarming: return "warming";
    case StartupPhase::kReady: return "ready";
  }
  return "?";
}

struct StartupState {
  std::atomic<StartupPhase> phase{StartupPhase::kJoining};
  std::atomic<int64_t> bytes_done{0}, bytes_total{0};
};

}  // namespace levin
