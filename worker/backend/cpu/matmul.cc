#include <algorithm>
#include <array>
#include <span>

#include "worker/backend/cpu/activation.h"
#include "worker/backend/cpu/cpu_kernels.h"
#include "worker/backend/cpu/element.h"
#include "worker/backend/cpu/packed_matrix.h"
#include "worker/backend/cpu/plain_dot.h"
#include "worker/backend/cpu/tile_rows.h"

namespace levin {
namespace {

// Below this many multiply-adds a second thread costs more than it brings.
constexpr int64_t kWorthAThread = 30'000;

// Rows [begin, end) of the weights, for tokens [t_begin, t_end).
template <typename X, typename Out>
void PlainPart(const MatMulArgs& args, const X* x, Out* out, int64_t begin, int64_t end,
               int64_t t_begin, int64_t t_end) {
  const WeightMatrix& w = *args.weight;
  for (int64_t t = t_begin; t < t_end; ++t) {
    for (int64_t row = begin; row < end; ++row) {
      const float y = PlainDot(x + t * w.cols, w, row);
      Store(out + t * w.rows + row, args.epilogue == Epilogue::kSilu ? Silu(y) : y);
    }
  }
}

// The same for two packed blocks, 2 * unit and the next one if there is one.
template <typename W, typename X, typename Out>
void PackedPart(const SimdOps& ops, const MatMulArgs& args, const X* x, Out* out, int64_t unit,
                int64_t t_begin, int64_t t_end) {
  const WeightMatrix& w = *args.weight;
  const int64_t first = 2 * unit;
  const int64_t second = std::min(first + 1, WholeBlocks(w) - 1);
  const int64_t column = first * kBlockRows;
  const int64_t columns = (second - first + 1) * kBlockRows;
  const float* scale = w.scale ? F32(w.scale) + column : nullptr;
  ForTiles<X>(
      ops, t_begin, t_end, BlockOf<W>(w, first), BlockOf<W>(w, second), w.cols,
      [&](int64_t t) { return x + t * w.cols; },
      [&](int64_t t, float* y) {
        if (scale != nullptr) {
          for (int64_t i = 0; i < columns; ++i) y[i] *= scale[i];
        }
        if (args.epilogue == Epilogue::kSilu) ops.silu(y, columns);
        Out* to = out + t * w.rows + column;
        for (int64_t i = 0; i < columns; ++i) Store(to + i, y[i]);
      });
}

// The same for `count` blocks from `first` on and many tokens.
template <typename W, typename X, typename Out>
void RowsPart(const SimdOps& ops, const MatMulArgs& args, const X* x, Out* out, int64_t first,
              int64_t count, int64_t t_begin, int64_t t_end) {
  const WeightMatrix& w = *args.weight;
  std::array<const W*, ProductSpace::kBlocks> blocks;
  for (int64_t b = 0; b < count; ++b) blocks[b] = BlockOf<W>(w, first + b);
  const float* scale = w.scale ? F32(w.scale) : nullptr;
  ForRows<X, W>(
      ops, t_begin, t_end, std::span(blocks).first(count), w.cols,
      [&](int64_t t) { return x + t * w.cols; },
      [&](int64_t t, const auto& results) {
        for (int64_t b = 0; b < count; ++b) {
          const int64_t column = (first + b) * kBlockRows;
          float* y = results(static_cast<int>(b));
          if (scale != nullptr) {
            for (int64_t i = 0; i < kBlockRows; ++i) y[i] *= scale[column + i];
          }
          if (args.epilogue == Epilogue::kSilu) ops.silu(y, kBlockRows);
          Out* to = out + t * w.rows + column;
          for (int64_t i = 0; i < kBlockRows; ++i) Store(to + i, y[i]);
        }
      });
}

template <typename W, typename X, typename Out>
void UnitPart(const SimdOps& ops, const MatMulArgs& args, const X* x, Out* out, int64_t unit,
              int64_t per_unit, bool many, int64_t t_begin, int64_t t_end) {
  if (!many) return PackedPart<W>(ops, args, x, out, unit, t_begin, t_end);
  const int64_t count = std::min(per_unit, WholeBlocks(*args.weight) - unit * per_unit);
  RowsPart<W>(ops, args, x, out, unit * per_unit, count, t_begin, t_end);
}

}  // namespace

void CpuKernels::MatMul(const MatMulArgs& args) {
  const WeightMatrix& w = *args.weight;
  const int64_t tokens = args.x.shape[0];
  CHECK(args.x.shape == (Shape{tokens, w.cols}) && args.out.shape == (Shape{tokens, w.rows}),
        ToString(args.x.shape), ToString(args.out.shape), w.rows, w.cols);
  const int64_t blocks = w.packed ? WholeBlocks(w) : 0;
  const bool many = ManyRows(simd_, tokens);
  const int64_t per_unit = many ? BlocksOfUnit(blocks, tokens, pool_.threads()) : 2;
  const int64_t units = (blocks + per_unit - 1) / per_unit;
  const int64_t rest = w.rows - blocks * kBlockRows;  // row-major
  // Tokens are cut where the weights have too few rows to employ everybody, and where they are more
  // than the caches hold: one piece of them after the other meets all weights.
  const int64_t at_once = many ? ProductSpace::kRows : tokens;
  const int64_t cuts = std::clamp<int64_t>(4 * pool_.threads() / std::max<int64_t>(units, 1),
                                           (tokens + at_once - 1) / at_once,
                                           (tokens + kTileRowsMax - 1) / kTileRowsMax);
  const int64_t piece_work = (tokens / cuts + 1) * w.cols * per_unit * kBlockRows;
  WithFloats(args.x, [&](const auto* x) {
    WithFloats(args.out, [&](auto* out) {
      pool_.ParallelFor(units * cuts, std::max<int64_t>(1, kWorthAThread / piece_work),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t item = begin; item < end; ++item) {
                            const int64_t cut = item / units;
                            const int64_t t_begin = tokens * cut / cuts;
                            const int64_t t_end = tokens * (cut + 1) / cuts;
                            if (w.data.dtype == DType::kI8) {
                              UnitPart<int8_t>(*simd_, args, x, out, item % units, per_unit, many,
                                               t_begin, t_end);
                            } else {
                              UnitPart<uint16_t>(*simd_, args, x, out, item % units, per_unit, many,
                                                 t_begin, t_end);
                            }
                          }
                        });
      const int64_t row_work = std::max<int64_t>(1, tokens * w.cols);
      pool_.ParallelFor(rest, kWorthAThread / row_work + 1, [&](int64_t begin, int64_t end) {
        const int64_t first = blocks * kBlockRows;
        PlainPart(args, x, out, first + begin, first + end, 0, tokens);
      });
    });
  });
}

}  // namespace levin
