// What fits into a device: weights, everything else, cache (model.md 9.2). Arithmetic only: bytes
// of weights come from the loader's own layout, costs of requests from cache_cost.
#pragma once

#include <cstdint>
#include <vector>

#include "common/config/cache_cost.h"
#include "common/config/cache_share.h"
#include "common/config/model_config.h"

namespace levin {

// One rank's weights by kind.
struct WeightBytes {
  int64_t experts = 0;
  int64_t scales = 0;  // of int8 experts
  int64_t attention = 0;
  int64_t embedding = 0;
  int64_t head = 0;  // 0 when it is the embedding
  int64_t gates = 0;
  int64_t norms = 0;

  int64_t total() const { return experts + scales + attention + embedding + head + gates + norms; }
  bool operator==(const WeightBytes&) const = default;
};

// An assumption, not a measurement: activations, workspace, communication buffers, the device's own
// context. The two contexts that the deployment guide publishes for eight GPUs (2M tokens at 80 GB,
// 5M at 96 GB, utilisation 0.95) both leave this much beside weights and cache (model.md 9.2).
inline constexpr int64_t kPublishedOverheadBytes = 5'200'000'000;

struct MemoryDemand {
  int ranks = 1;             // legal for the model
  int64_t device_bytes = 0;  // of each rank
  double utilization = 0.9;  // the part of them that may be used
  int64_t overhead_bytes = kPublishedOverheadBytes;
  int kv_element_bytes = 2;    // as MakeCacheGeometry
  int64_t max_num_seqs = 256;  // >= 1
  int64_t max_model_len = 0;   // 0: AutomaticLength
};

struct MemoryPlan {
  int64_t budget_bytes = 0;  // utilization * device
  WeightBytes weights;
  int64_t overhead_bytes = 0;
  int64_t cache_bytes = 0;  // budget - weights - overhead; negative: so much is missing
  int64_t needed_bytes =
      0;              // of the budget, so that one sequence (of max_model_len, if given) fits
  bool fits = false;  // needed_bytes <= budget_bytes
  CacheGeometry geometry;
  int64_t longest_tokens = 0;  // of one sequence alone in the cache, at most max_positions; 0: none

  // Where it fits, the allocator's own ShareCache: the split, and the longest sequence accepted.
  int64_t max_model_len = 0;
  CacheSplit split;

  struct Context {
    int64_t tokens = 0;
    int64_t sequences = 0;           // that the bytes hold, however split; 0 beyond max_positions
    int64_t sequences_as_split = 0;  // with the split above; 0 beyond max_model_len
    bool operator==(const Context&) const = default;
  };
  std::vector<Context> contexts;  // 2k, 8k, 32k, 128k, 1M
};

// All bytes are those of the rank whose `weights` are given: the largest.
MemoryPlan PlanMemory(const ModelConfig& config, const WeightBytes& weights,
                      const MemoryDemand& demand);

}  // namespace levin
