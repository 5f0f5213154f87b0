#include "worker/backend/cpu/simd.h"

namespace levin {

namespace {

SimdOps WithBf16Products() {
  SimdOps ops = *avx512::Ops();
  if (const auto dots = avx512::FasterBf16Products(ops)) {
    ops.bf16_bf16 = dots->bf16;
    ops.bf16_int8 = dots->int8;
  }
  return ops;
}

}  // namespace

const SimdOps* FindSimdOps(CpuPath path, bool batch_invariant) {
  switch (path) {
    case CpuPath::kPlain:
      return nullptr;
    case CpuPath::kAvx2:
      return avx2::Ops();
    case CpuPath::kAvx512: {
      if (avx512::Ops() == nullptr) return nullptr;
      // The dot instruction rounds unlike fused multiply-adds, and whether it is taken hangs on a
      // measurement.
      if (batch_invariant) return avx512::Ops();
      // Measured once in a process: all its ranks agree.
      static const SimdOps ops = WithBf16Products();
      return &ops;
    }
  }
  return nullptr;
}

}  // namespace levin
