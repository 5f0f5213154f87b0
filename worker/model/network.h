// The door between the step loop and the network: the hybrid model in production, a scripted model
// (next token = hash of the sequence) in the simulation.
#pragma once

#include <cstdint>
#include <span>

#include "common/base/status.h"
#include "worker/plan/step_batch.h"

namespace levin {

class Network {
 public:
  virtual ~Network() = default;

  // Runs one step on this rank's shard and updates its KV and states in place. `logits` is
  // [batch.logit_tokens.size(), vocab_size()] fp32: raw head output, unmasked, gathered over the
  // ranks, the same bits on each. Engine thread only. An error ends the epoch: a state update
  // cannot be undone.
  virtual Status Run(const StepBatch& batch, std::span<float> logits) = 0;

  virtual int32_t vocab_size() const = 0;
};

}  // namespace levin
