#include "worker/backend/cpu/packed_matrix.h"

#include <algorithm>
#include <vector>

#include "common/base/check.h"

namespace levin {
namespace {

// Where element (k, n) of a block lies.
int64_t PlaceBf16(int64_t k, int64_t n, int64_t cols) {
  if (k == cols - 1 && k % 2 == 0) return k * kBlockRows + n;
  return k / 2 * 2 * kBlockRows + 2 * n + k % 2;
}
int64_t PlaceInt8(int64_t k, int64_t n, int64_t) { return k * kBlockRows + n; }

template <typename W, typename Place>
void Permute(WeightMatrix& matrix, Place place) {
  const int64_t cols = matrix.cols;
  std::vector<W> block(kBlockRows * cols);
  for (int64_t b = 0; b < WholeBlocks(matrix); ++b) {
    W* rows = matrix.data.as<W>() + b * kBlockRows * cols;
    for (int64_t n = 0; n < kBlockRows; ++n) {
      for (int64_t k = 0; k < cols; ++k) block[place(k, n, cols)] = rows[n * cols + k];
    }
    std::copy(block.begin(), block.end(), rows);
  }
}

}  // namespace

void PackInPlace(WeightMatrix& matrix) {
  CHECK(!matrix.packed, "packed twice");
  if (matrix.data.dtype == DType::kI8) {
    Permute<int8_t>(matrix, PlaceInt8);
  } else {
    CHECK(matrix.data.dtype == DType::kBF16, Name(matrix.data.dtype));
    Permute<uint16_t>(matrix, PlaceBf16);
  }
  matrix.packed = true;
}

}  // namespace levin
