// What this machine does at this moment with so many threads.
#pragma once

#include "worker/backend/cpu/thread_pool.h"
#include "worker/bench/roof_loops.h"
#include "worker/tensor/tensor.h"

namespace levin {

// Which loop bounds a kernel: reading memory, reading and writing it, fp32 multiply-adds.
enum class RoofKind : uint8_t { kRead, kRewrite, kArithmetic };

// Memory that no cache of today holds, and the time of a pass is still short.
constexpr int64_t kBeyondCaches = int64_t{192} << 20;

class Roof final {
 public:
  Roof(int threads, CpuPath path);

  // Bytes, or operations, per second: one pass of some milliseconds.
  double Measure(RoofKind kind);
  double Measure(const ArithmeticLoop& loop);

 private:
  ThreadPool pool_;
  const RoofLoops loops_;
  Buffer memory_;
};

}  // namespace levin
