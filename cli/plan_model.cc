#include "cli/plan_model.h"

#include <cmath>
#include <utility>

#include "worker/weights/weight_layout.h"

namespace levin {
namespace {

bool WantsInt8(const PlanOptions& options) { return options.quantization == "experts_int8"; }

MemoryDemand DemandOf(const PlanOptions& options) {
  MemoryDemand demand;
  demand.ranks = options.world_size;
  demand.device_bytes = options.device_bytes;
  demand.utilization = options.gpu_memory_utilization;
  if (options.overhead_bytes >= 0) demand.overhead_bytes = options.overhead_bytes;
  demand.kv_element_bytes = options.dtype == "float32" ? 4 : 2;
  demand.max_num_seqs = options.max_num_seqs;
  demand.max_model_len = options.max_model_len;
  return demand;
}

// Rank 0 is the largest: only the vocabulary may divide unevenly, and the last ranks get less.
MemoryPlan MemoryOf(const ModelConfig& config, const PlanOptions& options) {
  const ExpertFormat experts = ExpertFormatFor(config, WantsInt8(options));
  return PlanMemory(config, WeightBytesOf(config, {0, options.world_size}, experts),
                    DemandOf(options));
}

// The smallest legal group above the present one that fits; 0: none.
int MoreRanks(const ModelConfig& config, PlanOptions options) {
  for (int ranks = options.world_size + 1; ranks <= config.heads; ++ranks) {
    if (!CheckTensorParallel(config, ranks).ok()) continue;
    options.world_size = ranks;
    if (MemoryOf(config, options).fits) return ranks;
  }
  return 0;
}

void AddMoreRanks(const ModelConfig& config, PlanOptions options, const std::string& suffix,
                  std::vector<Remedy>& remedies) {
  const int ranks = MoreRanks(config, options);
  if (ranks == 0) return;
  options.world_size = ranks;
  remedies.push_back({"--tensor-parallel-size " + std::to_string(ranks) + suffix,
                      MemoryOf(config, options).needed_bytes});
}

std::vector<Remedy> Remedies(const ModelConfig& config, const PlanOptions& options,
                             const MemoryPlan& memory) {
  std::vector<Remedy> remedies;
  if (options.max_model_len > 0 && memory.longest_tokens > 0) {
    remedies.push_back(
        {"--max-model-len " + std::to_string(memory.longest_tokens), memory.budget_bytes});
  }
  PlanOptions int8 = options;
  int8.quantization = "experts_int8";
  const std::string int8_flag = " --quantization experts_int8";
  if (ExpertFormatFor(config, WantsInt8(options)) == ExpertFormat::kBF16) {
    const MemoryPlan smaller = MemoryOf(config, int8);
    if (smaller.fits) {
      remedies.push_back({int8_flag.substr(1), smaller.needed_bytes});
    } else {
      AddMoreRanks(config, int8, int8_flag, remedies);
    }
  }
  AddMoreRanks(config, options, "", remedies);
  const double device = static_cast<double>(memory.needed_bytes) / options.gpu_memory_utilization;
  const auto gigabytes = static_cast<int64_t>(std::ceil(device / 1e9));
  remedies.push_back({"--device-memory " + std::to_string(gigabytes) + "GB", memory.needed_bytes});
  return remedies;
}

std::vector<std::string> ServeFlags(const ModelPlan& plan) {
  return {"--tensor-parallel-size",
          std::to_string(plan.options.world_size),
          "--quantization",
          plan.experts == ExpertFormat::kInt8 ? "experts_int8" : "none",
          "--dtype",
          plan.options.dtype,
          "--cache-bytes",
          std::to_string(plan.memory.cache_bytes * plan.options.world_size),
          "--max-model-len",
          std::to_string(plan.memory.max_model_len),
          "--max-num-seqs",
          std::to_string(plan.memory.split.slots)};
}

tl::unexpected<PlanRefusal> Refuse(int exit_code, Status status) {
  return tl::unexpected<PlanRefusal>({exit_code, std::move(status)});
}

Status CheckOptions(const PlanOptions& options, const ModelConfig& config) {
  RETURN_IF_ERROR(CheckTensorParallel(config, options.world_size));
  if (config.experts_stored_int8 && options.quantization == "none") {
    return InvalidArgument(
        "--quantization is none, but the checkpoint's experts are stored as int8: expected "
        "experts_int8 or auto");
  }
  if (options.max_model_len > config.max_positions) {
    return InvalidArgument("--max-model-len is " + std::to_string(options.max_model_len) +
                           ", expected at most the model's " +
                           std::to_string(config.max_positions) + " positions");
  }
  return Status::Ok();
}

}  // namespace

tl::expected<ModelPlan, PlanRefusal> MakeModelPlan(const PlanOptions& options) {
  constexpr int kOptionsExit = 2;
  constexpr int kFolderExit = 3;
  ModelPlan plan;
  plan.options = options;
  Result<ModelConfig> config = LoadModelConfig(options.model);
  if (!config) return Refuse(kFolderExit, std::move(config).error());
  plan.config = *std::move(config);
  if (Status status = CheckOptions(options, plan.config); !status.ok()) {
    return Refuse(kOptionsExit, std::move(status));
  }
  const Result<CheckpointFacts> facts = InspectCheckpoint(options.model, plan.config);
  if (!facts) return Refuse(kFolderExit, facts.error());
  plan.checkpoint = *facts;
  plan.experts = ExpertFormatFor(plan.config, WantsInt8(options));
  plan.memory = MemoryOf(plan.config, options);
  if (plan.memory.fits) {
    plan.flags = ServeFlags(plan);
  } else {
    plan.remedies = Remedies(plan.config, options, plan.memory);
  }
  return plan;
}

}  // namespace levin
