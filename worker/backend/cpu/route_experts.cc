#include <algorithm>
#include <cmath>

#include "worker/backend/cpu/cpu_kernels.h"
#include "worker/backend/cpu/element.h"

namespace levin {
namespace {

float PlainDot(const float* x, const float* gate, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * gate[i];
  return static_cast<float>(sum);
}

// The k largest, best first; among equals the lowest index. A NaN is never larger than anything.
void TopK(const float* logits, int64_t experts, int64_t k, int32_t* chosen) {
  for (int64_t n = 0; n < k; ++n) {
    int32_t best = -1;
    for (int32_t e = 0; e < experts; ++e) {
      const bool taken = std::find(chosen, chosen + n, e) != chosen + n;
      if (!taken && (best < 0 || logits[e] > logits[best])) best = e;
    }
    chosen[n] = best;
  }
}

// Softmax over all, renormalised over the chosen: the same as a softmax over the chosen.
void Weigh(const float* logits, const int32_t* chosen, int64_t k, float* weights) {
  float total = 0;
  for (int64_t n = 0; n < k; ++n) {
    weights[n] = std::exp(logits[chosen[n]] - logits[chosen[0]]);
    total += weights[n];
  }
  for (int64_t n = 0; n < k; ++n) weights[n] /= total;
}

}  // namespace

void CpuKernels::RouteExperts(const RouteExpertsArgs& args) {
  const int64_t n = args.x.shape[1];
  const int64_t experts = args.gate.shape[0];
  const int64_t k = args.experts.shape[1];
  CHECK(args.gate.shape[1] == n && k <= experts && args.weights.shape == args.experts.shape,
        ToString(args.gate.shape), k);
  const float* gate = F32(args.gate);
  float* logits = F32(args.logits);
  int32_t* chosen = I32(args.experts);
  float* weights = F32(args.weights);
  const float* x = F32(args.x);
  const auto dot = simd_ == nullptr ? PlainDot : simd_->dot;
  pool_.ParallelFor(args.x.shape[0], 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      float* row = logits + t * experts;
      for (int64_t e = 0; e < experts; ++e) {
        row[e] = dot(x + t * n, gate + e * n, n);
        if (args.round_logits_to_bf16) row[e] = Bf16ToFloat(FloatToBf16(row[e]));
      }
      TopK(row, experts, k, chosen + t * k);
      Weigh(row, chosen + t * k, k, weights + t * k);
    }
  });
}

}  // namespace levin
