#include <algorithm>

#include "worker/backend/cpu/cpu_kernels.h"
#include "worker/backend/cpu/element.h"

namespace levin {

void CpuKernels::Embed(const EmbedArgs& args) {
  const int64_t hidden = args.table.shape[1];
  CHECK(args.table.dtype == DType::kBF16 && args.out.shape[1] == hidden, hidden);
  const uint16_t* table = args.table.as<uint16_t>();
  float* out = F32(args.out);
  pool_.ParallelFor(static_cast<int64_t>(args.tokens.size()), 16, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t row = args.tokens[t] - args.first;
      float* to = out + t * hidden;
      if (row < 0 || row >= args.table.shape[0]) {
        std::fill_n(to, hidden, 0.0f);
      } else {
        for (int64_t i = 0; i < hidden; ++i) to[i] = Bf16ToFloat(table[row * hidden + i]);
      }
    }
  });
}

}  // namespace levin
