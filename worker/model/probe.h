// An observer of the forward pass, null in serving. `levin eval` hands one in to write down layer
// outputs, logits and states; there is no second forward pass. Called on the engine thread of every
// rank; tensors are only valid during the call.
#pragma once

#include <cstdint>
#include <string_view>

#include "worker/plan/step_batch.h"
#include "worker/tensor/tensor.h"

namespace levin {

class Probe {
 public:
  virtual ~Probe() = default;
  // `what`: after_attention, after_mlp ([T, hidden] f32, the same on every rank), router_logits
  // ([T, experts] f32), experts ([T, k] i32, best first), final_norm ([T, hidden] f32; layer = -1).
  virtual void OnTensor(std::string_view what, int layer, const TensorView& value,
                        const StepBatch& batch) = 0;
  // Whether OnLogits is to be called; asked once.
  virtual bool wants_logits() const { return true; }
  // Raw head output of every token of the step when the probe asks for all of them, unmasked:
  // [T, vocab] f32, gathered.
  virtual void OnLogits(const TensorView& logits, const StepBatch& batch) = 0;
};

}  // namespace levin
