#include <algorithm>

#include "worker/backend/cpu/activation.h"
#include "worker/backend/cpu/cpu_kernels.h"
#include "worker/backend/cpu/element.h"
#include "worker/backend/cpu/expert_order.h"
#include "worker/backend/cpu/plain_dot.h"

namespace levin {
namespace {

// hidden[place] = SiLU(w1 x) * (w3 x), rows [begin, end) of the expert's width.
template <typename Act>
void PlainHidden(const ExpertMatMulArgs& args, const ExpertOrder& order, int64_t expert,
                 int64_t begin, int64_t end, const Act* x, Act* hidden) {
  const WeightMatrix& w1 = args.w1[expert];
  const WeightMatrix& w3 = args.w3[expert];
  for (int32_t n = order.first[expert]; n < order.first[expert + 1]; ++n) {
    const Act* in = x + order.token[n] * w1.cols;
    for (int64_t row = begin; row < end; ++row) {
      Store(hidden + order.place[n] * w1.rows + row,
            Silu(PlainDot(in, w1, row)) * PlainDot(in, w3, row));
    }
  }
}

// out[token] += weight * (w2 hidden), rows [begin, end) of H.
template <typename Act>
void PlainOutput(const ExpertMatMulArgs& args, const ExpertOrder& order, int64_t expert,
                 int64_t begin, int64_t end, const Act* hidden, float* out) {
  const WeightMatrix& w2 = args.w2[expert];
  const float* weights = F32(args.weights);
  for (int32_t n = order.first[expert]; n < order.first[expert + 1]; ++n) {
    const Act* in = hidden + order.place[n] * w2.cols;
    const float weight = weights[order.place[n]];
    for (int64_t row = begin; row < end; ++row) {
      out[order.token[n] * w2.rows + row] += weight * PlainDot(in, w2, row);
    }
  }
}

}  // namespace

void CpuKernels::ExpertMatMul(const ExpertMatMulArgs& args) {
  const auto experts = static_cast<int64_t>(args.w1.size());
  const int64_t tokens = args.x.shape[0];
  const int64_t k = args.experts.shape[1];
  const int64_t width = args.w1[0].rows;
  const int64_t n = args.w2[0].rows;
  CHECK(args.x.dtype == args.hidden.dtype && args.hidden.shape == (Shape{tokens * k, width}) &&
            args.x.shape[1] == args.w1[0].cols && args.out.shape == (Shape{tokens, n}),
        ToString(args.hidden.shape), ToString(args.out.shape));
  const ExpertOrder order =
      OrderByExpert({I32(args.experts), static_cast<size_t>(tokens * k)}, k, experts,
                    {I32(args.order), static_cast<size_t>(args.order.elements())});
  float* out = F32(args.out);
  WithFloats(args.x, [&]<typename Act>(Act* x) {
    Act* hidden = args.hidden.as<Act>();
    pool_.ParallelFor(width, 8, [&](int64_t begin, int64_t end) {
      for (int64_t e = 0; e < experts; ++e) PlainHidden(args, order, e, begin, end, x, hidden);
    });
    // A thread has its rows of H for all experts: a token's experts are added in ascending order.
    pool_.ParallelFor(n, 8, [&](int64_t begin, int64_t end) {
      for (int64_t t = 0; t < tokens; ++t) {
        std::fill(out + t * n + begin, out + t * n + end, 0.0f);
      }
      for (int64_t e = 0; e < experts; ++e) PlainOutput(args, order, e, begin, end, hidden, out);
    });
  });
}

}  // namespace levin
