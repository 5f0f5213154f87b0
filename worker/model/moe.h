// The mixture of experts of a layer (model.md 5), on this rank's slice of every expert.
#pragma once

#include <vector>

#include "worker/backend/backend.h"
#include "worker/model/step_context.h"
#include "worker/weights/model_weights.h"

namespace levin {

class Moe final {
 public:
  // The weights' memory must live longer and is packed in place.
  Moe(const LayerWeights& weights, bool round_router_logits, Backend& backend);

  // step.workspace.update = F(step.workspace.y), the sum over all ranks. Router logits and chosen
  // experts stay in the workspace, the same bits on every rank.
  Status Run(const StepContext& step) const;

 private:
  TensorView gate_;
  const bool round_router_logits_;
  std::vector<WeightMatrix> w1_, w3_, w2_;  // [E]
};

}  // namespace levin
