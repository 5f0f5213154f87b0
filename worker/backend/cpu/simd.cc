#include "worker/backend/cpu/simd.h"

namespace levin {

const SimdOps* FindSimdOps(CpuPath path) {
  switch (path) {
    case CpuPath::kPlain:
      return nullptr;
    case CpuPath::kAvx2:
      return avx2::Ops();
    case CpuPath::kAvx512:
      return avx512::Ops();
  }
  return nullptr;
}

}  // namespace levin
