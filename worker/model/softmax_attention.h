// A softmax attention sub-block (model.md 3): F(y) for one layer, on this rank's heads.
#pragma once

#include <cstdint>
#include <span>

#include "common/config/model_config.h"
#include "worker/backend/backend.h"
#include "worker/model/step_context.h"
#include "worker/weights/model_weights.h"

namespace levin {

class SoftmaxAttention final {
 public:
  // `index`: which of the softmax layers this is. `inv_freq` (worker/backend/rope.h) and the
  // weights' memory must live longer; the weights are packed in place.
  SoftmaxAttention(const ModelConfig& config, int index, int ranks, const LayerWeights& weights,
                   std::span<const float> inv_freq, Backend& backend);

  // step.workspace.update = F(step.workspace.y), the sum over all ranks. The step's keys and values
  // are in the cache afterwards.
  Status Run(const StepContext& step) const;

 private:
  const int index_;
  const int64_t kv_heads_;
  const std::span<const float> inv_freq_;
  WeightMatrix q_, k_, v_, o_;
};

}  // namespace levin
