#include <cmath>

#include "worker/backend/cpu/activation.h"
#include "worker/backend/cpu/cpu_kernels.h"
#include "worker/backend/cpu/element.h"

namespace levin {

void CpuKernels::SumSquares(const SumSquaresArgs& args) {
  const int64_t n = args.x.shape[1];
  const float* x = F32(args.x);
  float* out = F32(args.out);
  pool_.ParallelFor(args.x.shape[0], 16, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[t * n + i]) * x[t * n + i];
      out[t] = static_cast<float>(sum);
    }
  });
}

void CpuKernels::GateNorm(const GateNormArgs& args) {
  const int64_t n = args.x.shape[1];
  CHECK(args.x.shape == args.gate.shape && args.x.shape == args.out.shape &&
            args.weight.elements() == n && args.sum_squares.elements() == args.x.shape[0],
        ToString(args.x.shape), ToString(args.gate.shape));
  const float* x = F32(args.x);
  const float* gate = F32(args.gate);
  const float* weight = F32(args.weight);
  const float* squares = F32(args.sum_squares);
  WithFloats(args.out, [&](auto* out) {
    pool_.ParallelFor(args.x.shape[0], 8, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const float scale =
            1.0f / std::sqrt(squares[t] / static_cast<float>(args.width) + args.eps);
        for (int64_t i = 0; i < n; ++i) {
          const int64_t at = t * n + i;
          Store(out + at, Sigmoid(gate[at]) * (weight[i] * (x[at] * scale)));
        }
      }
    });
  });
}

}  // namespace levin
