#include <cstring>

#include "worker/backend/cpu/cpu_kernels.h"

namespace levin {

void CpuKernels::GatherRows(const GatherRowsArgs& args) {
  CHECK(args.x.dtype == args.out.dtype && args.x.row_bytes() == args.out.row_bytes(),
        ToString(args.x.shape), ToString(args.out.shape));
  const int64_t bytes = args.x.row_bytes();
  for (size_t i = 0; i < args.indices.size(); ++i) {
    std::memcpy(args.out.data + i * bytes, args.x.data + args.indices[i] * bytes, bytes);
  }
}

}  // namespace levin
