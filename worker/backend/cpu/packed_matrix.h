// The order in which the vector kernels read a weight matrix: blocks of 16 output rows, each one
// contiguous stream, so that a thread reads memory front to back and needs no horizontal sums.
//
// bf16: element (k, n) of a block at [k / 2][n][k % 2]; of an odd K the last k at [n].
// int8: element (k, n) at [k][n].
// Rows beyond the last whole block stay row-major.
#pragma once

#include <cstdint>

#include "worker/backend/cpu/simd.h"
#include "worker/backend/kernels.h"

namespace levin {

// In place: one block is permuted at a time.
void PackInPlace(WeightMatrix& matrix);

inline int64_t WholeBlocks(const WeightMatrix& matrix) { return matrix.rows / kBlockRows; }

template <typename W>
const W* BlockOf(const WeightMatrix& matrix, int64_t block) {
  return matrix.data.as<W>() + block * kBlockRows * matrix.cols;
}

}  // namespace levin
