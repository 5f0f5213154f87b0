#include <algorithm>
#include <array>
#include <span>

#include "worker/backend/cpu/activation.h"
#include "worker/backend/cpu/cpu_kernels.h"
#include "worker/backend/cpu/element.h"
#include "worker/backend/cpu/expert_order.h"
#include "worker/backend/cpu/packed_matrix.h"
#include "worker/backend/cpu/plain_dot.h"
#include "worker/backend/cpu/tile_rows.h"

namespace levin {
namespace {

// One call of ExpertMatMul. Rows of a weight matrix are cut into units of some blocks of 16: of w1
// and w3 for the hidden layer, of w2 for the output; what no whole block holds is row-major.
template <typename Act, typename W>
class Experts final {
 public:
  // hidden_blocks, output_blocks: of a unit.
  Experts(const SimdOps* ops, const ExpertMatMulArgs& args, const ExpertOrder& order,
          int64_t hidden_blocks, int64_t output_blocks)
      : ops_(ops),
        args_(args),
        order_(order),
        hidden_blocks_(hidden_blocks),
        output_blocks_(output_blocks),
        x_(args.x.as<Act>()),
        hidden_(args.hidden.as<Act>()),
        weights_(F32(args.weights)),
        out_(F32(args.out)) {}

  // hidden[place] = SiLU(w1 x) * (w3 x) for a unit's rows of the expert's width.
  void Hidden(int64_t expert, int64_t unit) const {
    const WeightMatrix& w1 = args_.w1[expert];
    const WeightMatrix& w3 = args_.w3[expert];
    const Part part = PartOf(w1, unit, hidden_blocks_);
    PlainHidden(expert, part.packed_end, part.end);
    std::array<const W*, ProductSpace::kBlocks> blocks;
    for (int b = 0; b < part.blocks(); ++b) {
      blocks[2 * b] = BlockOf<W>(w1, part.block(b));
      blocks[2 * b + 1] = BlockOf<W>(w3, part.block(b));
    }
    const auto use = [&](int64_t n, int b, float* up, float* gate) {
      const int64_t row = part.row + b * kBlockRows;
      if (w1.scale) {
        for (int64_t i = 0; i < kBlockRows; ++i) up[i] *= F32(w1.scale)[row + i];
        for (int64_t i = 0; i < kBlockRows; ++i) gate[i] *= F32(w3.scale)[row + i];
      }
      ops_->silu(up, kBlockRows);
      Act* to = hidden_ + order_.place[n] * w1.rows + row;
      for (int64_t i = 0; i < kBlockRows; ++i) Store(to + i, up[i] * gate[i]);
    };
    Multiply(
        expert, std::span(blocks).first(2 * part.blocks()), w1.cols,
        [&](int64_t n) { return x_ + order_.token[n] * w1.cols; }, use);
  }

  // out[token] = sum over its experts of weight * (w2 hidden), for a unit's rows of H. One thread
  // has all experts of a unit: they are added in ascending order.
  void Output(int64_t unit) const {
    const int64_t n = args_.w2[0].rows;
    const Part part = PartOf(args_.w2[0], unit, output_blocks_);
    for (int64_t t = 0; t < args_.x.shape[0]; ++t) {
      std::fill_n(out_ + t * n + part.row, part.end - part.row, 0.0f);
    }
    for (size_t e = 0; e < args_.w2.size(); ++e) {
      if (order_.first[e] < order_.first[e + 1]) AddExpert(static_cast<int64_t>(e), part);
    }
  }

 private:
  // Rows [row, end) of a matrix, those below packed_end in blocks.
  struct Part {
    int64_t row, packed_end, end;

    int blocks() const { return static_cast<int>((packed_end - row) / kBlockRows); }
    int64_t block(int b) const { return row / kBlockRows + b; }
  };
  static Part PartOf(const WeightMatrix& w, int64_t unit, int64_t blocks) {
    const int64_t row = unit * blocks * kBlockRows;
    const int64_t end = std::min(row + blocks * kBlockRows, w.rows);
    return {row, w.packed ? std::clamp(WholeBlocks(w) * kBlockRows, row, end) : row, end};
  }

  // use(n, pair, results of block 2 * pair, of the block behind it) for the expert's entries n.
  template <typename Row, typename Use>
  void Multiply(int64_t expert, std::span<const W* const> blocks, int64_t k, const Row& row,
                const Use& use) const {
    const int64_t begin = order_.first[expert];
    const int64_t end = order_.first[expert + 1];
    if (blocks.empty() || begin == end) return;
    const auto pairs = static_cast<int>(blocks.size() + 1) / 2;
    const int last = static_cast<int>(blocks.size()) - 1;
    if (ManyRows(ops_, end - begin)) {
      ForRows<Act, W>(*ops_, begin, end, blocks, k, row, [&](int64_t n, const auto& results) {
        for (int b = 0; b < pairs; ++b) {
          use(n, b, results(2 * b), results(std::min(2 * b + 1, last)));
        }
      });
      return;
    }
    for (int b = 0; b < pairs; ++b) {
      ForTiles<Act>(*ops_, begin, end, blocks[2 * b], blocks[std::min(2 * b + 1, last)], k, row,
                    [&](int64_t n, float* y) { use(n, b, y, y + kBlockRows); });
    }
  }

  void AddExpert(int64_t expert, const Part& part) const {
    const WeightMatrix& w2 = args_.w2[expert];
    PlainOutput(expert, part.packed_end, part.end);
    std::array<const W*, ProductSpace::kBlocks> blocks;
    for (int b = 0; b < part.blocks(); ++b) blocks[b] = BlockOf<W>(w2, part.block(b));
    const auto add = [&](float* to, int64_t row, float weight, const float* y) {
      for (int64_t i = 0; i < kBlockRows; ++i) {
        const float scale = w2.scale ? F32(w2.scale)[row + i] : 1.0f;
        to[row + i] += weight * (y[i] * scale);
      }
    };
    Multiply(
        expert, std::span(blocks).first(part.blocks()), w2.cols,
        [&](int64_t n) { return hidden_ + order_.place[n] * w2.cols; },
        [&](int64_t n, int b, const float* first, const float* second) {
          const float weight = weights_[order_.place[n]];
          float* to = out_ + order_.token[n] * w2.rows;
          const int64_t row = part.row + 2 * b * kBlockRows;
          add(to, row, weight, first);
          if (2 * b + 1 < part.blocks()) add(to, row + kBlockRows, weight, second);
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
  const int64_t hidden_blocks_, output_blocks_;
  const Act* const x_;
  Act* const hidden_;
  const float* const weights_;
  float* const out_;
};

int64_t Units(int64_t rows, int64_t blocks) {
  return (rows + blocks * kBlockRows - 1) / (blocks * kBlockRows);
}

template <typename Act, typename W>
void Run(const SimdOps* ops, const ExpertMatMulArgs& args, const ExpertOrder& order,
         ThreadPool& pool) {
  const auto count = static_cast<int64_t>(args.w1.size());
  const int64_t width = args.w1[0].rows;
  const int64_t out = args.w2[0].rows;
  // Few tokens: small units, of which each thread finds enough.
  const bool many = ManyRows(ops, args.hidden.shape[0] / count);
  const int64_t hidden_blocks =
      many ? std::min<int64_t>(BlocksOfUnit(count * width / kBlockRows, 1, pool.threads()),
                               ProductSpace::kBlocks / 2)
           : 1;
  const int64_t output_blocks =
      many ? BlocksOfUnit(out / kBlockRows, 1, pool.threads()) : kTileColumns / kBlockRows;
  const Experts<Act, W> experts(ops, args, order, hidden_blocks, output_blocks);
  const int64_t units = Units(width, hidden_blocks);
  // Units of experts that nobody chose cost nothing: they may lie in any piece.
  pool.ParallelFor(count * units, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) experts.Hidden(item / units, item % units);
  });
  pool.ParallelFor(Units(out, output_blocks), 1, [&](int64_t begin, int64_t end) {
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
