// The loops that a kernel is measured against, one table per instruction set: they do nothing but
// read, rewrite or multiply.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/backend/cpu/cpu_backend.h"

namespace levin {

struct ArithmeticLoop {
  const char* name;             // the instruction
  double operations_per_round;  // of one thread; a multiply-add is two
  void (*run)(int64_t rounds);
};

struct RoofLoops {
  // Sums, so that no load can be left out. n: a multiple of 64.
  float (*read)(const float* x, int64_t n);
  void (*rewrite)(float* x, int64_t n);  // x = x * c in place
  ArithmeticLoop multiply_add;           // fp32
};

RoofLoops RoofLoopsOf(CpuPath path);

// Further dots that this processor has: pairs of bf16, fours of int8.
std::vector<ArithmeticLoop> ExtraArithmetic(CpuPath path);

namespace plain {
RoofLoops Loops();
}
namespace avx2 {
RoofLoops Loops();
}
namespace avx512 {
RoofLoops Loops();
std::vector<ArithmeticLoop> ExtraLoops();
}  // namespace avx512

}  // namespace levin
