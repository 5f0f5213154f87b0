#include <cmath>

#include "worker/backend/cpu/cpu_kernels.h"
#include "worker/backend/cpu/element.h"

namespace levin {
namespace {

// One token. `x` is scratch of the row's length, which may be the place of `sum`.
template <typename In, typename Out>
void NormRow(const In* residual, const float* update, const RmsNormArgs& args, int64_t n,
             const float* weight, float* sum, Out* out) {
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) {
    float x = args.beta * update[i];
    if (residual != nullptr) x += args.alpha * Load(residual + i);
    squares += static_cast<double>(x) * x;
    sum[i] = x;
  }
  const float mean = static_cast<float>(squares / static_cast<double>(n));
  const float scale = 1.0f / std::sqrt(mean + args.eps);
  for (int64_t i = 0; i < n; ++i) Store(out + i, weight[i] * (sum[i] * scale));
}

}  // namespace

void CpuKernels::RmsNorm(const RmsNormArgs& args) {
  const int64_t tokens = args.update.shape[0];
  const int64_t n = args.update.shape[1];
  CHECK(args.out.shape == args.update.shape && args.weight.elements() == n,
        ToString(args.out.shape), ToString(args.update.shape));
  float* update = F32(args.update);
  // Without a place for the sum it overwrites the update, which nobody reads again.
  float* sum = args.sum ? F32(args.sum) : update;
  const float* weight = F32(args.weight);
  const auto norm = [&](const auto* residual, auto* out) {
    pool_.ParallelFor(tokens, 8, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        NormRow(residual == nullptr ? nullptr : residual + t * n, update + t * n, args, n, weight,
                sum + t * n, out + t * n);
      }
    });
  };
  WithFloats(args.out, [&](auto* out) {
    if (!args.residual) return norm(static_cast<const float*>(nullptr), out);
    CHECK(args.residual.shape == args.update.shape, ToString(args.residual.shape));
    WithFloats(args.residual, [&](auto* residual) { norm(residual, out); });
  });
}

}  // namespace levin
