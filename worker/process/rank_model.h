// The steps that every rank takes between the group's Welcome and its Ready: weights, memory,
// warm-up. All ranks must derive the same step limits, so that is here too.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "common/config/options.h"
#include "worker/comm/collective.h"
#include "worker/engine/eval_job.h"
#include "worker/engine/sequence_table.h"
#include "worker/group/leader_board.h"
#include "worker/model/hybrid_model.h"
#include "worker/process/exit_code.h"
#include "worker/process/model_folder.h"
#include "worker/schedule/scheduler.h"
#include "worker/weights/model_weights.h"

namespace levin {

// The weight files of the folder must not be larger than the memory that is available (half of them
// where bf16 experts become int8; 0: unknown). kResourceExhausted with both numbers: better than
// being killed in the middle of the load.
Status CheckWeightsFit(const WorkerOptions& options, int64_t available_bytes);

// Prints the progress line and calls `progress` (may be empty) beside it. The test hook of
// --test-corrupt-rank damages the weights here.
OrExit<ModelWeights> LoadRankWeights(const WorkerOptions& options, const ModelFolder& folder,
                                     std::function<void(int64_t, int64_t)> progress);

// max_model_len matters to the leader alone.
SchedulerOptions MakeSchedulerOptions(const WorkerOptions& options, const ModelFolder& folder,
                                      const PoolFacts& pool, uint64_t epoch, int64_t max_model_len,
                                      const std::optional<EvalJob>& job);

PlanLimits MakePlanLimits(const SchedulerOptions& options);

// Takes all memory of this rank: nothing is allocated later.
OrExit<std::unique_ptr<HybridModel>> BuildModel(const WorkerOptions& options,
                                                const ModelFolder& folder, ModelWeights weights,
                                                Collective& collective,
                                                const SchedulerOptions& steps, int threads);

// How long steps take here.
struct StepSpeed {
  int64_t token_us = 1;  // of a chunk at the beginning of a prompt; at least 1
  double pair_ns = 1;    // more for each pair of a token and an earlier position; at least 1
};

// Chunks at the beginning of a prompt and far into one, and a single token: the same on every rank.
Result<StepSpeed> WarmUp(Network& network, const SchedulerOptions& steps);

}  // namespace levin
