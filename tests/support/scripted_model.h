// A network whose next token is a hash of the sequence so far, for the scheduler's simulation. It
// reads what it hashes from the slot and the blocks that the plan names, as the real one does: a
// wrong slot, a wrong block, a state not zeroed or fed twice gives other logits. What was freed can
// be poisoned; reading poison gives NaN.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "common/base/types.h"
#include "common/inference/generation.h"
#include "worker/model/network.h"
#include "worker/plan/step_batch.h"
#include "worker/sample/sampler.h"

namespace levin::testing {

class ScriptedModel final : public Network {
 public:
  ScriptedModel(int64_t slots, int64_t blocks, int32_t block_tokens, int32_t vocab_size);

  Status Run(const StepBatch& batch, std::span<float> logits) override;
  int32_t vocab_size() const override { return vocab_size_; }

  void PoisonSlot(int32_t slot);
  void PoisonBlock(int32_t block);

  int64_t rows_run() const { return rows_run_; }
  // Called before each Run; an error becomes the step's.
  std::function<Status(const StepBatch&)> before_run;

 private:
  struct Slot {
    uint64_t state = 0;
    bool poisoned = true;
  };

  void RunRow(const StepBatch& batch, int32_t row);
  void Logits(const StepBatch& batch, int32_t row, std::span<float> out) const;

  const int32_t block_tokens_, vocab_size_;
  std::vector<Slot> slots_;
  std::vector<TokenId> keys_;  // [blocks, block_tokens]
  int64_t rows_run_ = 0;
};

// What the generation gives alone: the same function of the ids, without slots, blocks and batches.
struct ScriptedOutput {
  std::vector<TokenId> tokens;
  FinishReason reason = FinishReason::kNone;
};
ScriptedOutput RunAlone(const Generation& generation, Sampler& sampler, int32_t vocab_size);

}  // namespace levin::testing
