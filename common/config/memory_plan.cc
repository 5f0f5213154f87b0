#include "common/config/memory_plan.h"

#include <algorithm>

#include "common/base/check.h"

namespace levin {
namespace {

constexpr int64_t kContexts[] = {2 << 10, 8 << 10, 32 << 10, 128 << 10, 1 << 20};

// Tokens of one sequence that has the whole cache.
int64_t LongestAlone(const ModelConfig& config, const MemoryDemand& demand, int64_t cache_bytes,
                     const CacheGeometry& geometry) {
  if (cache_bytes <= 0) return 0;
  const Result<CacheSplit> split =
      SplitBudget(cache_bytes * demand.ranks, demand.ranks, geometry, 1, config.max_positions);
  return split ? split->tokens_max : 0;
}

MemoryPlan::Context At(int64_t tokens, const ModelConfig& config, const MemoryPlan& plan) {
  MemoryPlan::Context context{.tokens = tokens};
  if (tokens > config.max_positions) return context;
  context.sequences = plan.cache_bytes / RequestBytes(plan.geometry, tokens, 0);
  if (tokens > plan.max_model_len) return context;
  const int64_t blocks = BlocksFor(plan.geometry, tokens, 0);
  context.sequences_as_split = std::min(plan.split.slots, plan.split.blocks / blocks);
  return context;
}

}  // namespace

MemoryPlan PlanMemory(const ModelConfig& config, const WeightBytes& weights,
                      const MemoryDemand& demand) {
  CHECK(demand.ranks >= 1 && demand.max_num_seqs >= 1, demand.ranks, demand.max_num_seqs);
  MemoryPlan plan;
  plan.budget_bytes =
      static_cast<int64_t>(static_cast<double>(demand.device_bytes) * demand.utilization);
  plan.weights = weights;
  plan.overhead_bytes = demand.overhead_bytes;
  plan.cache_bytes = plan.budget_bytes - weights.total() - demand.overhead_bytes;
  plan.geometry = MakeCacheGeometry(config, demand.ranks, demand.kv_element_bytes);
  const int64_t least = std::max<int64_t>(demand.max_model_len, 1);
  plan.needed_bytes =
      weights.total() + demand.overhead_bytes + RequestBytes(plan.geometry, least, 0);
  plan.fits = plan.needed_bytes <= plan.budget_bytes;
  plan.longest_tokens = LongestAlone(config, demand, plan.cache_bytes, plan.geometry);
  if (!plan.fits) return plan;
  const Result<CacheShare> share =
      ShareCache(config, plan.geometry, plan.cache_bytes * demand.ranks, demand.ranks,
                 demand.max_num_seqs, demand.max_model_len);
  CHECK(share.has_value(), plan.cache_bytes);  // it holds needed_bytes, hence one sequence
  plan.split = share->split;
  plan.max_model_len = share->max_model_len;
  for (int64_t tokens : kContexts) plan.contexts.push_back(At(tokens, config, plan));
  return plan;
}

}  // namespace levin
