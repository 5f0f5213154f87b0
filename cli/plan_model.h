// What `levin plan` finds out: a folder and flags in, numbers out. Prints nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/config/memory_plan.h"
#include "common/config/model_config.h"
#include "common/config/options.h"
#include "worker/weights/checkpoint_facts.h"
#include "worker/weights/model_weights.h"

namespace levin {

// A change that would make it fit.
struct Remedy {
  std::string flags;         // "--tensor-parallel-size 16"
  int64_t needed_bytes = 0;  // of each rank's device, all of it that may be used
};

struct ModelPlan {
  PlanOptions options;
  ModelConfig config;
  CheckpointFacts checkpoint;
  ExpertFormat experts = ExpertFormat::kBF16;
  MemoryPlan memory;               // of the largest rank
  std::vector<Remedy> remedies;    // where it does not fit
  std::vector<std::string> flags;  // for `levin serve MODEL`, where it fits
};

struct PlanRefusal {
  int exit_code = 1;
  Status status;
};

// Refused with exit code 2 (flags that do not suit the model) or 3 (the folder). A model that does
// not fit is a plan that says so.
tl::expected<ModelPlan, PlanRefusal> MakeModelPlan(const PlanOptions& options);

}  // namespace levin
