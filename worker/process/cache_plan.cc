#include "worker/process/cache_plan.h"

#include <algorithm>

#include "common/config/cache_share.h"

namespace levin {
namespace {

constexpr int64_t kDefaultBytesMax = int64_t{8} << 30;

std::string Mib(int64_t bytes) { return std::to_string((bytes + (1 << 19)) >> 20) + " MiB"; }
std::string Kib(int64_t bytes) { return std::to_string((bytes + (1 << 9)) >> 10) + " KiB"; }

int64_t Budget(const WorkerOptions& options, int64_t available_bytes) {
  if (options.cache_bytes > 0) return options.cache_bytes;
  return available_bytes > 0 ? std::min(available_bytes / 4, kDefaultBytesMax) : kDefaultBytesMax;
}

Status CheckFits(const CachePlan& plan, int ranks, int64_t available_bytes) {
  if (available_bytes == 0 || plan.split.bytes_per_rank * ranks <= available_bytes)
    return Status::Ok();
  return ResourceExhausted(plan.Text(ranks) + "; but only " + Mib(available_bytes) +
                           " are available: expected a smaller --cache-bytes");
}

}  // namespace

std::string CachePlan::Text(int ranks) const {
  return "cache: " + std::to_string(split.slots) + " slots of " +
         Kib(geometry.state_bytes_per_slot * ranks) + " and " + std::to_string(split.blocks) +
         " blocks of " + std::to_string(geometry.block_tokens) + " tokens, together " +
         Mib(split.bytes_per_rank * ranks) + " on " + std::to_string(ranks) +
         (ranks == 1 ? " rank" : " ranks") + "; longest sequence " + std::to_string(max_model_len) +
         " tokens";
}

OrExit<CachePlan> PlanCache(const WorkerOptions& options, const ModelConfig& config,
                            int64_t available_bytes) {
  CachePlan plan;
  plan.geometry = MakeCacheGeometry(config, options.world_size, options.dtype == "float32" ? 4 : 2);
  const int64_t budget = Budget(options, available_bytes);
  const Result<CacheShare> share = ShareCache(config, plan.geometry, budget, options.world_size,
                                              options.max_num_seqs, options.max_model_len);
  if (!share) return ExitFor(ExitCode::kConfig, share.error());
  plan.split = share->split;
  plan.max_model_len = share->max_model_len;
  if (Status fits = CheckFits(plan, options.world_size, available_bytes); !fits.ok())
    return ExitWith(ExitCode::kMemory, fits);
  return plan;
}

OrExit<CachePlan> PlanJobCache(const WorkerOptions& options, const EvalJob& job,
                               const ModelConfig& config, int64_t available_bytes) {
  if (options.cache_bytes > 0) return PlanCache(options, config, available_bytes);
  CachePlan plan;
  plan.geometry = MakeCacheGeometry(config, options.world_size, options.dtype == "float32" ? 4 : 2);
  plan.split.slots = job.batch ? static_cast<int64_t>(job.prompts.size()) : 1;
  for (const EvalPrompt& prompt : job.prompts) {
    const auto tokens = static_cast<int64_t>(prompt.ids.size());
    const int64_t blocks = BlocksFor(plan.geometry, tokens, job.greedy);
    plan.split.blocks =
        job.batch ? plan.split.blocks + blocks : std::max(plan.split.blocks, blocks);
    plan.max_model_len = std::max(plan.max_model_len, tokens + job.greedy);
  }
  plan.split.bytes_per_rank = plan.split.slots * plan.geometry.state_bytes_per_slot +
                              plan.split.blocks * plan.geometry.kv_bytes_per_block;
  plan.split.tokens_max = plan.split.blocks * plan.geometry.block_tokens;
  if (Status fits = CheckFits(plan, options.world_size, available_bytes); !fits.ok())
    return ExitWith(ExitCode::kMemory, fits);
  return plan;
}

}  // namespace levin
