// Both ends of the network: ids to vectors, vectors to logits (model.md 2.4). Each rank holds a
// slice of the vocabulary.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/config/model_config.h"
#include "worker/backend/backend.h"
#include "worker/model/step_context.h"
#include "worker/weights/model_weights.h"

namespace levin {

class Embedding final {
 public:
  // The weights' memory must live longer.
  explicit Embedding(const ModelWeights& weights)
      : first_(weights.vocab_first), table_(weights.embedding) {}

  // step.workspace.update = the tokens' rows, summed over all ranks: exact, one of them is not 0.
  Status Run(const StepContext& step, std::span<const TokenId> tokens) const;

 private:
  const int64_t first_;
  const TensorView table_;
};

class Head final {
 public:
  // Works on at most rows_max rows at a time. The weights' memory must live longer and is packed in
  // place; a head that is the embedding gets a copy of its own.
  Head(const ModelConfig& config, int ranks, const ModelWeights& weights, DType act,
       int64_t rows_max, Backend& backend);

  // logits [rows.size(), vocab] = head y for these rows of step.workspace.y; fp32, gathered.
  Status Run(const StepContext& step, std::span<const int32_t> rows, std::span<float> logits);

 private:
  Status RunPiece(const StepContext& step, std::span<const int32_t> rows, float* logits);

  const int64_t vocab_;
  const int64_t rows_max_;
  std::vector<VocabSlice> slices_;  // [ranks]
  Buffer copy_, inputs_memory_, part_memory_, all_memory_;
  TensorView inputs_;  // [rows_max, H] act
  WeightMatrix weight_;
};

}  // namespace levin
