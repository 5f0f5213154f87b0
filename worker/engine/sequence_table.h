// One rank's table: sequence -> slot, blocks, sampling, ids so far. Written by plans alone, equal
// on every rank. Refuses a plan that contradicts it: a plan comes over a wire. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "common/base/status.h"
#include "common/base/types.h"
#include "common/inference/sampling_params.h"
#include "worker/plan/batch_plan.h"
#include "worker/plan/step_batch.h"
#include "worker/sample/token_history.h"

namespace levin {

// What a rank allocated at start: no plan may go beyond it.
struct PlanLimits {
  uint64_t epoch = 0;
  int64_t slots = 0;
  int64_t blocks = 0;
  int32_t block_tokens = 64;
  int32_t rows_max = 0;
  int32_t tokens_max = 0;  // of all rows of one step
  int32_t vocab_size = 0;
};

struct TableEntry {
  int32_t slot = 0;
  std::vector<int32_t> blocks;
  SamplingParams sampling;
  TokenHistory history;    // what penalties and bad sequences look at
  TokenId last_token = 0;  // drawn last
  int64_t computed = 0;    // positions in the cache
  int64_t drawn = 0;       // the next draw's output index
};

class SequenceTable final {
 public:
  explicit SequenceTable(PlanLimits limits);

  // Finished, started, then the rows, in the plan's order. Rows' tokens count as computed.
  Result<StepBatch> Apply(const BatchPlan& plan);

  const TableEntry& at(SequenceId sequence) const;  // must be known
  void RecordDraw(SequenceId sequence, TokenId token);

  size_t size() const { return entries_.size(); }
  // XXH3 over ids, positions and draws of all sequences: equal tables give equal values.
  uint64_t Checksum() const;

 private:
  Status Finish(SequenceId sequence);
  Status Start(const BatchPlan& plan, const NewSequence& started);
  Status AddRow(const BatchPlan& plan, const PlanRow& row, StepBatch& batch);

  const PlanLimits limits_;
  std::map<SequenceId, TableEntry> entries_;
  std::vector<bool> slot_used_, block_used_;
  SequenceId highest_ = 0;  // ids rise: none is used twice
};

}  // namespace levin
