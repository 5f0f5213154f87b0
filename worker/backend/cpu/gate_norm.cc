#include <algorithm>
#include <cmath>

#include "worker/backend/cpu/activation.h"
#include "worker/backend/cpu/cpu_kernels.h"
#include "worker/backend/cpu/element.h"

namespace levin {
namespace {

float PlainSquares(const float* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  return static_cast<float>(sum);
}

void PlainGateNorm(const float* x, const float* gate, const float* weight, float scale, float* out,
                   int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = Sigmoid(gate[i]) * (weight[i] * (x[i] * scale));
}

void WriteRow(const SimdOps*, const float* row, float* out, int64_t n) { std::copy_n(row, n, out); }
void WriteRow(const SimdOps* ops, const float* row, uint16_t* out, int64_t n) {
  if (ops != nullptr) return ops->round(row, out, n);
  for (int64_t i = 0; i < n; ++i) Store(out + i, row[i]);
}

}  // namespace

void CpuKernels::SumSquares(const SumSquaresArgs& args) {
  const int64_t n = args.x.shape[1];
  const float* x = F32(args.x);
  float* out = F32(args.out);
  pool_.ParallelFor(args.x.shape[0], 16, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const float* row = x + t * n;
      out[t] = simd_ == nullptr ? PlainSquares(row, n) : simd_->dot(row, row, n);
    }
  });
}

void CpuKernels::GateNorm(const GateNormArgs& args) {
  const int64_t n = args.x.shape[1];
  CHECK(args.x.shape == args.gate.shape && args.x.shape == args.out.shape &&
            args.weight.elements() == n && args.sum_squares.elements() == args.x.shape[0],
        ToString(args.x.shape), ToString(args.gate.shape));
  const float* x = F32(args.x);
  float* gate = F32(args.gate);
  const float* weight = F32(args.weight);
  const float* squares = F32(args.sum_squares);
  const auto gate_norm = simd_ == nullptr ? PlainGateNorm : simd_->gate_norm;
  WithFloats(args.out, [&](auto* out) {
    pool_.ParallelFor(args.x.shape[0], 8, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const float scale =
            1.0f / std::sqrt(squares[t] / static_cast<float>(args.width) + args.eps);
        float* row = gate + t * n;
        gate_norm(x + t * n, row, weight, scale, row, n);
        WriteRow(simd_, row, out + t * n, n);
      }
    });
  });
}

}  // namespace levin
