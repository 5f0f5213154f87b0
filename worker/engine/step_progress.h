// How far a rank's step loop is, for heartbeat and watchdog threads. Written by the engine thread,
// read by any.
#pragma once

#include <atomic>
#include <cstdint>

namespace levin {

struct StepProgress {
  std::atomic<uint64_t> begun{0};     // number of the step begun last
  std::atomic<uint64_t> done{0};      // number of the step done last
  std::atomic<bool> has_work{false};  // leader: something can run or a notice is due
  std::atomic<int64_t> pairs{0};      // leader: AttendedPairs of the step begun last
};

}  // namespace levin
