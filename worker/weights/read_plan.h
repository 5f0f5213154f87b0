// What one rank reads, cut into pieces: the order of loading, decided before the first byte.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/weights/checkpoint.h"
#include "worker/weights/needed_tensors.h"
#include "worker/weights/placement.h"
#include "worker/weights/safetensors.h"

namespace levin {

// Whole rows of a stored tensor and where this rank's part of them goes.
struct ReadPiece {
  const SafetensorsFile* file = nullptr;
  const StoredTensor* tensor = nullptr;
  int64_t offset = 0;  // in the tensor's data
  int64_t bytes = 0;
  WeightBlock block;  // `to` and `scales` begin at the piece's first row
  int64_t position =
      0;  // of `to` among all bytes of the rank's weights: the same in every spelling
  bool digested = true;  // not so for stored scales: quantising makes them without a piece
};

// At most this many bytes of bf16 a piece, unless one row has more. Where a piece is cut depends on
// shapes alone, not on the stored type: digests of the same network are the same.
inline constexpr int64_t kPieceBytes = int64_t{4} << 20;

// By file, in the order in which the tensors lie there; every byte once. Needs memory in `weights`;
// checkpoint and needed tensors were checked against each other.
std::vector<ReadPiece> PlanReads(const Checkpoint& checkpoint,
                                 const std::vector<NeededTensor>& needed, const ModelConfig& config,
                                 RankShare rank, const ModelWeights& weights);

}  // namespace levin
