// A lightning attention sub-block (model.md 4): F(y) for one layer, on this rank's heads.
#pragma once

#include <cstdint>
#include <vector>

#include "common/config/model_config.h"
#include "worker/backend/backend.h"
#include "worker/model/step_context.h"
#include "worker/weights/model_weights.h"

namespace levin {

class LightningAttention final {
 public:
  // `index`: which of the lightning layers this is; `layer`: which of all. The weights' memory must
  // live longer and is packed in place.
  LightningAttention(const ModelConfig& config, int layer, int index, int rank, int ranks,
                     const LayerWeights& weights, Backend& backend);

  // step.workspace.update = F(step.workspace.y), the sum over all ranks.
  Status Run(const StepContext& step) const;

 private:
  const int index_;
  const int64_t width_;  // of all heads of the model
  const float eps_;
  std::vector<double> slopes_;  // this rank's slice of the model's list
  WeightMatrix qkv_, output_gate_, out_;
  TensorView norm_;
};

}  // namespace levin
