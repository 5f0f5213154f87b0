// How a group's cache is shared out and how long a sequence may become: one rule, applied by the
// allocator when it starts and by the planner beforehand.
#pragma once

#include <cstdint>

#include "common/base/status.h"
#include "common/config/cache_cost.h"
#include "common/config/model_config.h"

namespace levin {

struct CacheShare {
  CacheSplit split;
  int64_t max_model_len = 0;  // longest sequence that is accepted

  bool operator==(const CacheShare&) const = default;
};

// max_model_len 0: AutomaticLength, and no more than the split holds; else what was asked, up to
// the model's positions, whether the split holds it or not. Errors as SplitBudget.
Result<CacheShare> ShareCache(const ModelConfig& config, const CacheGeometry& geometry,
                              int64_t total_bytes, int ranks, int64_t max_num_seqs,
                              int64_t max_model_len);

// What half of a rank's cache holds for one sequence, in whole blocks, at most UsableWindow: one
// that nobody asked for leaves room for others beside it.
int64_t AutomaticLength(const ModelConfig& config, const CacheGeometry& geometry,
                        int64_t bytes_per_rank);

// The longest sequence that is worth offering unasked: what the family was trained for (1M tokens,
// Text-01 4M), not what its positions would allow.
int64_t UsableWindow(const ModelConfig& config);

}  // namespace levin
