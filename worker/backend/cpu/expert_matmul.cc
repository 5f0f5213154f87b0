#include <algorithm>

#include "worker/backend/cpu/activation.h"
#include "worker/backend/cpu/cpu_kernels.h"
#include "worker/backend/cpu/element.h"
#include "worker/backend/cpu/expert_order.h"
#include "worker/backend/cpu/packed_matrix.h"
#include "worker/backend/cpu/plain_dot.h"
#include "worker/backend/cpu/tile_rows.h"

namespace levin {
namespace {

// One call of ExpertMatMul. Rows of a weight matrix are cut into units: pairs of 16 rows w1 and 16
// rows w3 for the hidden layer, 32 rows of w2 for the output; what no whole block holds is
// row-major and one more unit.
template <typename Act, typename W>
class Experts final {
 public:
  Experts(const SimdOps* ops, const ExpertMatMulArgs& args, const ExpertOrder& order)
      : ops_(ops),
        args_(args),
        order_(order),
        x_(args.x.as<Act>()),
        hidden_(args.hidden.as<Act>()),
        weights_(F32(args.weights)),
        out_(F32(args.out)) {}

  // hidden[place] = SiLU(w1 x) * (w3 x) for rows [16 * unit, ...) of the expert's width.
  void Hidden(int64_t expert, int64_t unit) const {
    const WeightMatrix& w1 = args_.w1[expert];
    const WeightMatrix& w3 = args_.w3[expert];
    const int64_t row = unit * kBlockRows;
    if (!w1.packed || unit >= WholeBlocks(w1)) {
      return PlainHidden(expert, row, std::min(row + kBlockRows, w1.rows));
    }
    ForTiles<Act>(
        *ops_, order_.first[expert], order_.first[expert + 1], BlockOf<W>(w1, unit),
        BlockOf<W>(w3, unit), w1.cols, [&](int64_t n) { return x_ + order_.token[n] * w1.cols; },
        [&](int64_t n, float* y) {
          if (w1.scale) {
            for (int64_t i = 0; i < kBlockRows; ++i) y[i] *= F32(w1.scale)[row + i];
            for (int64_t i = 0; i < kBlockRows; ++i) {
              y[kBlockRows + i] *= F32(w3.scale)[row + i];
            }
          }
          ops_->silu(y, kBlockRows);
          Act* to = hidden_ + order_.place[n] * w1.rows + row;
          for (int64_t i = 0; i < kBlockRows; ++i) Store(to + i, y[i] * y[kBlockRows + i]);
        });
  }

  // out[token] = sum over its experts of weight * (w2 hidden), for rows [32 * unit, ...) of H. One
  // thread has all experts of a unit: they are added in ascending order.
  void Output(int64_t unit) const {
    const int64_t n = args_.w2[0].rows;
    const int64_t row = unit * kTileColumns;
    const int64_t rows = std::min(kTileColumns, n - row);
    for (int64_t t = 0; t < args_.x.shape[0]; ++t) std::fill_n(out_ + t * n + row, rows, 0.0f);
    for (size_t e = 0; e < args_.w2.size(); ++e) {
      if (order_.first[e] < order_.first[e + 1]) AddExpert(static_cast<int64_t>(e), unit);
    }
  }

 private:
  void AddExpert(int64_t expert, int64_t unit) const {
    const WeightMatrix& w2 = args_.w2[expert];
    const int64_t row = unit * kTileColumns;
    const int64_t end = std::min(row + kTileColumns, w2.rows);
    const int64_t packed_end = w2.packed ? std::clamp(WholeBlocks(w2) * kBlockRows, row, end) : row;
    PlainOutput(expert, packed_end, end);
    if (packed_end == row) return;
    const int64_t first = row / kBlockRows;
    const int64_t second = std::min(first + 1, WholeBlocks(w2) - 1);
    ForTiles<Act>(
        *ops_, order_.first[expert], order_.first[expert + 1], BlockOf<W>(w2, first),
        BlockOf<W>(w2, second), w2.cols,
        [&](int64_t n) { return hidden_ + order_.place[n] * w2.cols; },
        [&](int64_t n, float* y) {
          const float weight = weights_[order_.place[n]];
          float* to = out_ + order_.token[n] * w2.rows;
          for (int64_t i = row; i < packed_end; ++i) {
            const float scale = w2.scale ? F32(w2.scale)[i] : 1.0f;
            to[i] += weight * (y[i - row] * scale);
          }
        });
  }

  void PlainHidden(int64_t expert, int64_t begin, int64_t end) const {
    const WeightMatrix& w1 = args_.w1[expert];
    for (int32_t n = order_.first[expert]; n < order_.first[expert + 1]; ++n) {
      const Act* in = x_ + order_.token[n] * w1.cols;
      Act* to = hidden_ + order_.place[n] * w1.rows;
      for (int64_t row = begin; row < end; ++row) {
        Store(to + row, Silu(PlainDot(in, w1, row)) * PlainDot(in, args_.w3[expert], row));
      }
    }
  }

  void PlainOutput(int64_t expert, int64_t begin, int64_t end) const {
    const WeightMatrix& w2 = args_.w2[expert];
    for (int32_t n = order_.first[expert]; n < order_.first[expert + 1]; ++n) {
      const Act* in = hidden_ + order_.place[n] * w2.cols;
      float* to = out_ + order_.token[n] * w2.rows;
      for (int64_t row = begin; row < end; ++row) {
        to[row] += weights_[order_.place[n]] * PlainDot(in, w2, row);
      }
    }
  }

  const SimdOps* const ops_;
  const ExpertMatMulArgs& args_;
  const ExpertOrder& order_;
  const Act* const x_;
  Act* const hidden_;
  const float* const weights_;
  float* const out_;
};

template <typename Act, typename W>
void Run(const SimdOps* ops, const ExpertMatMulArgs& args, const ExpertOrder& order,
         ThreadPool& pool) {
  const Experts<Act, W> experts(ops, args, order);
  const auto count = static_cast<int64_t>(args.w1.size());
  const int64_t units = (args.w1[0].rows + kBlockRows - 1) / kBlockRows;
  // Units of experts that nobody chose cost nothing: they may lie in any piece.
  pool.ParallelFor(count * units, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) experts.Hidden(item / units, item % units);
  });
  pool.ParallelFor((args.w2[0].rows + kTileColumns - 1) / kTileColumns, 1,
                   [&](int64_t begin, int64_t end) {
                     for (int64_t unit = begin; unit < end; ++unit) experts.Output(unit);
                   });
}

}  // namespace

void CpuKernels::ExpertMatMul(const ExpertMatMulArgs& args) {
  const auto experts = static_cast<int64_t>(args.w1.size());
  const int64_t tokens = args.x.shape[0];
  const int64_t k = args.experts.shape[1];
  CHECK(args.hidden.shape == (Shape{tokens * k, args.w1[0].rows}) &&
            args.x.shape[1] == args.w1[0].cols &&
            args.out.shape == (Shape{tokens, args.w2[0].rows}),
        ToString(args.hidden.shape), ToString(args.out.shape));
  const ExpertOrder order =
      OrderByExpert({I32(args.experts), static_cast<size_t>(tokens * k)}, k, experts,
                    {I32(args.order), static_cast<size_t>(args.order.elements())});
  WithFloats(args.x, [&]<typename Act>(Act*) {
    if (args.w1[0].data.dtype == DType::kI8) {
      Run<Act, int8_t>(simd_, args, order, pool_);
    } else {
      Run<Act, uint16_t>(simd_, args, order, pool_);
    }
  });
}

}  // namespace levin
