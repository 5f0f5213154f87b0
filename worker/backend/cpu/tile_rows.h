// A product of activation rows with two blocks of packed weights, for rows that need not be
// neighbours: the tile's results as they come out of the vector kernel.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "common/base/check.h"
#include "worker/backend/cpu/simd.h"

namespace levin {

constexpr int kTileRowsMax = 12;

// The product for these types, of the table.
inline const TileProduct<float, uint16_t>& ProductOf(const SimdOps& ops, float, uint16_t) {
  return ops.f32_bf16;
}
inline const TileProduct<float, int8_t>& ProductOf(const SimdOps& ops, float, int8_t) {
  return ops.f32_int8;
}
inline const TileProduct<uint16_t, uint16_t>& ProductOf(const SimdOps& ops, uint16_t, uint16_t) {
  return ops.bf16_bf16;
}
inline const TileProduct<uint16_t, int8_t>& ProductOf(const SimdOps& ops, uint16_t, int8_t) {
  return ops.bf16_int8;
}

inline RowsProduct<float, uint16_t> RowsOf(const SimdOps& ops, float, uint16_t) {
  return ops.rows_f32_bf16;
}
inline RowsProduct<float, int8_t> RowsOf(const SimdOps& ops, float, int8_t) {
  return ops.rows_f32_int8;
}
inline RowsProduct<uint16_t, uint16_t> RowsOf(const SimdOps& ops, uint16_t, uint16_t) {
  return ops.rows_bf16_bf16;
}
inline RowsProduct<uint16_t, int8_t> RowsOf(const SimdOps& ops, uint16_t, int8_t) {
  return ops.rows_bf16_int8;
}

// Blocks of a unit of work: as many as share the widening of the rows, and still enough units to
// keep every thread busy to the end.
inline int64_t BlocksOfUnit(int64_t blocks, int64_t rows, int threads) {
  const int64_t pieces = (rows + ProductSpace::kRows - 1) / ProductSpace::kRows;
  return std::clamp<int64_t>(blocks * pieces / (8 * threads), 1, ProductSpace::kBlocks);
}

// Whether so many rows are worth ForRows.
inline bool ManyRows(const SimdOps* ops, int64_t rows) {
  return ops != nullptr && ops->rows_least > 0 && rows >= ops->rows_least;
}

// As ForTiles below, for any number of blocks up to ProductSpace::kBlocks: use(i, results) gets a
// function of the block's number that gives row i's 16 results with it.
template <typename X, typename W, typename Row, typename Use>
void ForRows(const SimdOps& ops, int64_t begin, int64_t end, std::span<const W* const> blocks,
             int64_t k, const Row& row, const Use& use) {
  ProductSpace space;
  std::array<const X*, ProductSpace::kRows> rows;
  const int64_t parts = (end - begin + ProductSpace::kRows - 1) / ProductSpace::kRows;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t first = begin + (end - begin) * part / parts;
    const int m = static_cast<int>(begin + (end - begin) * (part + 1) / parts - first);
    for (int i = 0; i < m; ++i) rows[i] = row(first + i);
    RowsOf(ops, X{}, W{})(rows.data(), m, blocks.data(), static_cast<int>(blocks.size()), k, space);
    for (int i = 0; i < m; ++i) {
      use(first + i, [&](int b) { return space.Results(b, m, i); });
    }
  }
}

// For rows [begin, end): row(i) is where row i of x begins; use(i, out) gets its 32 results: 16 of
// the block w0, then 16 of w1.
template <typename X, typename W, typename Row, typename Use>
void ForTiles(const SimdOps& ops, int64_t begin, int64_t end, const W* w0, const W* w1, int64_t k,
              const Row& row, const Use& use) {
  const TileProduct<X, W>& product = ProductOf(ops, X{}, W{});
  CHECK_LE(product.rows_max, kTileRowsMax);
  std::array<const X*, kTileRowsMax> rows;
  alignas(64) std::array<float, kTileRowsMax * kTileColumns> out;
  for (int64_t at = begin; at < end;) {
    const int m = static_cast<int>(std::min<int64_t>(product.rows_max, end - at));
    for (int i = 0; i < m; ++i) rows[i] = row(at + i);
    product.run(rows.data(), m, w0, w1, k, out.data());
    for (int i = 0; i < m; ++i) use(at + i, out.data() + i * kTileColumns);
    at += m;
  }
}

}  // namespace levin
