// Collects what `levin eval` writes down: logits and layer outputs of every prompt position, and
// the lightning states after the last one. Every rank runs one, since states are gathered from all;
// rank 0 keeps and writes. Names, shapes: README of tests/golden/network. The engine's thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/config/model_config.h"
#include "worker/comm/collective.h"
#include "worker/engine/eval_job.h"
#include "worker/engine/rank_executor.h"
#include "worker/model/probe.h"
#include "worker/tensor/tensor.h"

namespace levin {

class EvalCollector final : public Probe, public StepObserver {
 public:
  // All must outlive it. `states`: this rank's, [slots, lightning layers, local heads, d * d] f32.
  EvalCollector(const EvalJob& job, const ModelConfig& config, Collective& collective,
                TensorView states);

  // Rank 0, after the job: writes job.out. `greedy`: [prompts][job.greedy]. An error of ours when a
  // prompt position was never seen.
  Status Write(std::span<const std::vector<TokenId>> greedy);

  Status BeforeRun(const BatchPlan& plan, const StepBatch& batch) override;
  Status AfterRun(const BatchPlan& plan, const StepBatch& batch) override;
  void OnTensor(std::string_view what, int layer, const TensorView& value,
                const StepBatch& batch) override;
  void OnLogits(const TensorView& logits, const StepBatch& batch) override;

 private:
  struct Stored {
    Buffer memory;
    TensorView tensor;
  };

  int64_t PromptTokens(size_t prompt) const;
  int64_t FirstKept(size_t prompt) const;  // position
  TensorView Storage(const std::string& name, DType dtype, const Shape& shape);
  // Copies rows of `value` ([T, width]) to [position, layer] of each row's prompt.
  void Keep(std::string_view what, int layer, int64_t layers, const TensorView& value,
            const StepBatch& batch);
  Status GatherStates(size_t prompt, int32_t slot);

  const EvalJob& job_;
  const ModelConfig& config_;
  Collective& collective_;
  const TensorView states_;
  const bool keeps_;                // rank 0
  std::vector<size_t> row_prompt_;  // of the step under way; empty: not one of the job (warm-up)
  std::vector<int64_t> seen_;       // [prompts]: prompt positions with logits
  std::map<std::string, Stored> stored_;
};

}  // namespace levin
