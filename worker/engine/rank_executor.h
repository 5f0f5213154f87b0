// A plan's bytes become a step: decode, check, apply to this rank's sequence table, run the
// network, sample, fold the digest. The same code on leader and followers, so equal bytes give
// equal tokens. One thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "worker/engine/sequence_table.h"
#include "worker/model/network.h"
#include "worker/plan/batch_plan.h"
#include "worker/plan/step_batch.h"
#include "worker/sample/sampler.h"

namespace levin {

// Sees each step between the network and the sampler; null in serving (levin eval, tests).
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual Status BeforeRun(const BatchPlan& plan, const StepBatch& batch) = 0;
  virtual Status AfterRun(const BatchPlan& plan, const StepBatch& batch) = 0;
};

class RankExecutor final {
 public:
  // `network` and `observer` must outlive it. `defined`: [vocab] of DefinedTokens(), the ids that
  // exist; empty: all.
  RankExecutor(PlanLimits limits, Network& network, const std::vector<bool>& defined,
               StepObserver* observer = nullptr);

  // Errors: bytes that are no plan, a plan that contradicts the table or the limits
  // (kInvalidArgument), another epoch or step than the next one (kFailedPrecondition), or the
  // network's own. After an error the table is undefined: the epoch is over.
  Result<StepResult> Execute(std::string_view encoded);

  const SequenceTable& table() const { return table_; }

 private:
  Status CheckOrder(const BatchPlan& plan) const;
  Status RunNetwork(const BatchPlan& plan, const StepBatch& batch);
  void Sample(const BatchPlan& plan, StepResult& result);

  const PlanLimits limits_;
  Network& network_;
  StepObserver* const observer_;
  SequenceTable table_;
  Sampler sampler_;
  std::vector<float> logits_;  // [rows_max, vocab]
  uint64_t last_step_ = 0;
};

}  // namespace levin
