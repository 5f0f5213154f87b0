// What one step does, decided by the scheduler and executed by every rank: a diff of the ranks'
// sequence tables (protocol.md 11). Plain data: printable, replayable, sent once to every rank.
// Order of application: finished, started, rows.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/types.h"
#include "common/inference/generation.h"
#include "common/inference/sampling_params.h"

namespace levin {

struct NewSequence {
  SequenceId sequence = 0;
  int32_t state_slot = 0;
  Range blocks;  // in BatchPlan::blocks: the whole reservation
  SamplingParams sampling;
  // Distinct prompt ids for the penalties: in BatchPlan::tokens; empty where nothing counts them.
  Range counted;
  bool operator==(const NewSequence&) const = default;
};

struct PlanRow {
  SequenceId sequence = 0;
  int64_t position = 0;   // of this row's first token in its sequence
  Range tokens;           // in BatchPlan::tokens; empty: one token, the one sampled last
  bool fresh = false;     // the slot starts from zero: a fact, never guessed from counts
  bool stepwise = false;  // lightning in one-token form (decode); a prompt is in chunk form
  int32_t draws = 0;      // 0: a chunk that stops short of the prompt's end; else 1
  bool operator==(const PlanRow&) const = default;
};

struct BatchPlan {
  uint64_t epoch = 0;
  uint64_t step = 0;
  std::vector<TokenId> tokens;
  std::vector<int32_t> blocks;
  std::vector<SequenceId> finished;  // their memory comes back at this step; applied first
  std::vector<NewSequence> started;
  std::vector<PlanRow> rows;  // may be empty: notices travel all the same
  bool operator==(const BatchPlan&) const = default;
};

// Pairs of a token and a position that it may look at, over all rows: what softmax attention costs.
int64_t AttendedPairs(const BatchPlan& plan);

// What a step brought: one entry per row with draws > 0, in row order.
struct RowSample {
  SequenceId sequence = 0;
  SampledToken token = {};
  bool numeric_fault = false;  // NaN in this row's logits: that generation ends, the others go on
};

struct StepResult {
  uint64_t step = 0;
  std::vector<RowSample> samples;
  uint64_t digest = 0;  // XXH3 over plan bytes, drawn ids and table counters; equal on every rank
};

}  // namespace levin
