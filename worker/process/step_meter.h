// Counts and times the steps of this rank as they pass: kinds, work, waiting, blocks in use. On the
// engine thread; blocks_used from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>

#include "common/base/clock.h"
#include "common/metrics/worker_metrics.h"
#include "worker/engine/rank_executor.h"
#include "worker/process/timed_collective.h"

namespace levin {

// What a plan with rows is counted as: decode rows alone, prompt chunks alone, or both.
StepKind KindOf(const BatchPlan& plan);

class StepMeter final : public StepObserver {
 public:
  // All must outlive it.
  StepMeter(const WorkerMetrics& metrics, TimedCollective& collective, const Clock& clock,
            int32_t block_tokens)
      : metrics_(metrics), collective_(collective), clock_(clock), block_tokens_(block_tokens) {}

  Status BeforeRun(const BatchPlan& plan, const StepBatch& batch) override;
  Status AfterRun(const BatchPlan& plan, const StepBatch& batch) override;

  uint64_t steps() const { return steps_; }             // with rows
  int64_t blocks_used() const { return blocks_used_; }  // that hold at least one token

 private:
  void FollowBlocks(const BatchPlan& plan, const StepBatch& batch);

  const WorkerMetrics& metrics_;
  TimedCollective& collective_;
  const Clock& clock_;
  const int32_t block_tokens_;
  TimePoint began_;
  std::map<SequenceId, int64_t> blocks_of_;
  std::atomic<uint64_t> steps_{0};
  std::atomic<int64_t> blocks_used_{0};
};

}  // namespace levin
