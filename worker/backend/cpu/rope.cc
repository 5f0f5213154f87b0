#include "worker/backend/rope.h"

#include <cmath>

#include "worker/backend/cpu/cpu_kernels.h"
#include "worker/backend/cpu/element.h"

namespace levin {

void CpuKernels::Rope(const RopeArgs& args) {
  const int64_t heads = args.x.shape[1];
  const int64_t dim = args.x.shape[2];
  const int64_t half = static_cast<int64_t>(args.inv_freq.size());
  CHECK(2 * half <= dim, half, dim);
  CHECK_EQ(args.x.shape[0], static_cast<int64_t>(args.positions.size()));
  float* x = F32(args.x);
  pool_.ParallelFor(args.x.shape[0], 4, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      for (int64_t j = 0; j < half; ++j) {
        const float angle = RopeAngle(args.positions[t], args.inv_freq[j]);
        const float cosine = std::cos(angle);
        const float sine = std::sin(angle);
        for (int64_t h = 0; h < heads; ++h) {
          float* first = x + (t * heads + h) * dim + j;
          float* second = first + half;
          const float a = *first;
          const float b = *second;
          *first = a * cosine - b * sine;
          *second = b * cosine + a * sine;
        }
      }
    }
  });
}

}  // namespace levin
