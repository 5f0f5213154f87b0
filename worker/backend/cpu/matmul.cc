#include "worker/backend/cpu/activation.h"
#include "worker/backend/cpu/cpu_kernels.h"
#include "worker/backend/cpu/element.h"
#include "worker/backend/cpu/plain_dot.h"

namespace levin {
void CpuKernels::MatMul(const MatMulArgs& args) {
  const WeightMatrix& w = *args.weight;
  const int64_t tokens = args.x.shape[0];
  CHECK(args.x.shape == (Shape{tokens, w.cols}) && args.out.shape == (Shape{tokens, w.rows}),
        ToString(args.x.shape), ToString(args.out.shape), w.rows, w.cols);
  WithFloats(args.x, [&](const auto* x) {
    WithFloats(args.out, [&](auto* out) {
      pool_.ParallelFor(w.rows, 16, [&](int64_t begin, int64_t end) {
        for (int64_t t = 0; t < tokens; ++t) {
          for (int64_t row = begin; row < end; ++row) {
            const float y = PlainDot(x + t * w.cols, w, row);
            Store(out + t * w.rows + row, args.epilogue == Epilogue::kSilu ? Silu(y) : y);
          }
        }
      });
    });
  });
}

}  // namespace levin
