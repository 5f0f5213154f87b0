// A product of activation rows with two blocks of packed weights, for rows that need not be
// neighbours: the tile's results as they come out of the vector kernel.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

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
