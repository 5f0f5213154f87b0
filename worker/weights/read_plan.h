// What one rank reads, cut into pieces: the order of loading, decided before the first byte.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/weights/checkpoint.h"
#include "worker/weights/needed_tensors.h"
#include "worker/weights/placement.h"
#include "worker/weights/safetensors.h"

namespace levin {

// Rows of a stored tensor, or this rank's columns of them, and where its part of them goes.
struct ReadPiece {
  const SafetensorsFile* file = nullptr;
  const StoredTensor* tensor = nullptr;
  int64_t offset = 0;      // of its first byte in the tensor's data
  int64_t row_bytes = 0;   // read of each row
  int64_t row_stride = 0;  // from row to row; row_bytes where they are read as one
  int64_t bytes = 0;       // read altogether
  WeightBlock block;       // `to` and `scales` begin at the piece's first row
  int64_t position =
      0;  // of `to` among all bytes of the rank's weights: the same in every spelling
  bool digested = true;  // not so for stored scales: quantising makes them without a piece

  bool strided() const { return row_stride != row_bytes; }
  // From its first byte to its last, gaps included.
  int64_t extent() const {
    return bytes == 0 ? 0 : (bytes / row_bytes - 1) * row_stride + row_bytes;
  }
};

// A rank that owns some columns reads them row by row, and no byte of another rank's, when that is
// at least so many bytes a row. Measured with load_bench on rows of 18,432 bytes in the page cache:
// at 9,216 bytes a row (2 ranks) loading takes 0.75 to 0.9 of the CPU time that whole rows take, at
// 4,608 0.75, at 2,304 0.6, at 1,152 to 288 0.5 to 0.25.
inline constexpr int64_t kStridedBytesMin = 256;

// At most this many bytes of bf16 a piece, unless one row has more. Where a piece is cut depends on
// shapes alone, not on the stored type: digests of the same network are the same.
inline constexpr int64_t kPieceBytes = int64_t{4} << 20;

// By file, in the order in which the tensors lie there; every byte once. Needs memory in `weights`;
// checkpoint and needed tensors were checked against each other.
std::vector<ReadPiece> PlanReads(const Checkpoint& checkpoint,
                                 const std::vector<NeededTensor>& needed, const ModelConfig& config,
                                 RankShare rank, const ModelWeights& weights);

}  // namespace levin
