// Where a rank keeps its share of each stored tensor (model.md 8.1).
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "common/config/model_config.h"
#include "worker/weights/model_weights.h"
#include "worker/weights/needed_tensors.h"
#include "worker/weights/weight_layout.h"

namespace levin {

// A rectangle of a stored tensor, seen as a matrix [rows, columns], and where it goes.
struct WeightBlock {
  int64_t row_first = 0;  // in the stored matrix
  int64_t column_first = 0;
  TensorView to;            // [rows, columns of the slice]; f32, bf16 or int8
  float* scales = nullptr;  // [rows]: bf16 rows become int8 with these scales; null: as stored
};

// Memory for the weights of one rank, every view in its place, contents unset. kResourceExhausted
// when memory is short.
Result<ModelWeights> AllocateWeights(const ModelConfig& config, RankShare rank,
                                     ExpertFormat experts);

// The rank's share of one stored tensor, in ascending order of rows; none for a tensor of which the
// rank holds nothing.
std::vector<WeightBlock> Place(const NeededTensor& tensor, const ModelConfig& config,
                               RankShare rank, const ModelWeights& weights);

}  // namespace levin
