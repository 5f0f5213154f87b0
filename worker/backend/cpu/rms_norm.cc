#include <cmath>

#include "worker/backend/cpu/cpu_kernels.h"
#include "worker/backend/cpu/element.h"

namespace levin {
namespace {

// One token. `residual` may be null, `sum` may be `residual` or `update`, `normed` any of them.
void NormRow(const RmsNormArgs& args, int64_t n, const float* residual, const float* update,
             const float* weight, float* sum, float* normed) {
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) {
    float x = args.beta * update[i];
    if (residual != nullptr) x += args.alpha * residual[i];
    squares += static_cast<double>(x) * x;
    sum[i] = x;
  }
  const float mean = static_cast<float>(squares / static_cast<double>(n));
  const float scale = 1.0f / std::sqrt(mean + args.eps);
  for (int64_t i = 0; i < n; ++i) normed[i] = weight[i] * (sum[i] * scale);
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
  pool_.ParallelFor(tokens, 8, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t at = t * n;
      NormRow(args, n, residual == nullptr ? nullptr : residual + at, update + at, weight, sum + at,
              normed + at);
      if (rounded == nullptr) continue;
      for (int64_t i = at; i < at + n; ++i) rounded[i] = FloatToBf16(normed[i]);
    }
  });
}

}  // namespace levin
