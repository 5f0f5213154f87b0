// How much memory the group's cache gets and how it is split: decided by the leader, told to all.
#pragma once

#include <cstdint>
#include <string>

#include "common/config/cache_cost.h"
#include "common/config/model_config.h"
#include "common/config/options.h"
#include "worker/engine/eval_job.h"
#include "worker/process/exit_code.h"

namespace levin {

struct CachePlan {
  CacheGeometry geometry;  // one rank's
  CacheSplit split;
  int64_t max_model_len = 0;  // longest sequence that is accepted

  std::string Text(int ranks) const;  // one line for people
};

// `available_bytes` of the host after the weights are loaded (0: unknown). Without --cache-bytes: a
// quarter of it, at most 8 GiB. Split and longest sequence are ShareCache's (common/config).
// Not enough memory: ExitCode::kMemory with the numbers.
OrExit<CachePlan> PlanCache(const WorkerOptions& options, const ModelConfig& config,
                            int64_t available_bytes);

// What a job of levin eval needs, and no more: a slot and the blocks of each prompt that runs at
// once. With --cache-bytes, PlanCache's answer: prompts then wait for each other.
OrExit<CachePlan> PlanJobCache(const WorkerOptions& options, const EvalJob& job,
                               const ModelConfig& config, int64_t available_bytes);

}  // namespace levin
