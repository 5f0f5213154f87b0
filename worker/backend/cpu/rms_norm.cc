#include <cmath>

#include "worker/backend/cpu/cpu_kernels.h"
#include "worker/backend/cpu/element.h"

namespace levin {
namespace {

// x = beta * update + alpha * residual, written to `sum`; returns the sum of its squares.
float PlainAdd(const float* residual, float alpha, const float* update, float beta, float* sum,
               int64_t n) {
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) {
    float x = beta * update[i];
    if (residual != nullptr) x += alpha * residual[i];
    squares += static_cast<double>(x) * x;
    sum[i] = x;
  }
  return static_cast<float>(squares);
}

void PlainNormalise(const float* x, float scale, const float* weight, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = weight[i] * (x[i] * scale);
}

void PlainRound(const float* x, uint16_t* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = FloatToBf16(x[i]);
}

}  // namespace

void CpuKernels::RmsNorm(const RmsNormArgs& args) {
  const int64_t tokens = args.update.shape[0];
  const int64_t n = args.update.shape[1];
  CHECK(args.normed.shape == args.update.shape && args.out.shape == args.update.shape &&
            (!args.residual || args.residual.shape == args.update.shape) &&
            args.weight.elements() == n,
        ToString(args.update.shape), ToString(args.out.shape));
  const float* residual = args.residual ? F32(args.residual) : nullptr;
  float* update = F32(args.update);
  float* sum = args.sum ? F32(args.sum) : update;
  float* normed = F32(args.normed);
  const float* weight = F32(args.weight);
  uint16_t* rounded = args.out.dtype == DType::kBF16 ? args.out.as<uint16_t>() : nullptr;
  CHECK(rounded != nullptr || args.out.data == args.normed.data, Name(args.out.dtype));
  const auto add = simd_ == nullptr ? PlainAdd : simd_->add_scaled;
  const auto normalise = simd_ == nullptr ? PlainNormalise : simd_->normalise;
  const auto round = simd_ == nullptr ? PlainRound : simd_->round;
  pool_.ParallelFor(tokens, 8, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t at = t * n;
      const float squares = add(residual == nullptr ? nullptr : residual + at, args.alpha,
                                update + at, args.beta, sum + at, n);
      const float scale = 1.0f / std::sqrt(squares / static_cast<float>(n) + args.eps);
      normalise(sum + at, scale, weight, normed + at, n);
      if (rounded != nullptr) round(normed + at, rounded + at, n);
    }
  });
}

}  // namespace levin
