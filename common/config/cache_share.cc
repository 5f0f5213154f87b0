#include "common/config/cache_share.h"

#include <algorithm>

namespace levin {
namespace {

constexpr int64_t kWindowM1 = 1'000'000;
constexpr int64_t kWindowText01 = 4'000'000;

}  // namespace

int64_t UsableWindow(const ModelConfig& config) {
  const bool m1 = config.family == ModelConfig::Family::kM1;
  return std::min<int64_t>(config.max_positions, m1 ? kWindowM1 : kWindowText01);
}

int64_t AutomaticLength(const ModelConfig& config, const CacheGeometry& geometry,
                        int64_t bytes_per_rank) {
  const int64_t window = UsableWindow(config);
  if (geometry.kv_bytes_per_block == 0) return window;
  const int64_t blocks =
      (bytes_per_rank / 2 - geometry.state_bytes_per_slot) / geometry.kv_bytes_per_block;
  if (blocks < 1) return std::min<int64_t>(geometry.block_tokens, window);
  return std::min(blocks * geometry.block_tokens, window);
}

Result<CacheShare> ShareCache(const ModelConfig& config, const CacheGeometry& geometry,
                              int64_t total_bytes, int ranks, int64_t max_num_seqs,
                              int64_t max_model_len) {
  const bool asked = max_model_len > 0;
  CacheShare share;
  share.max_model_len = asked ? std::min(max_model_len, config.max_positions)
                              : AutomaticLength(config, geometry, total_bytes / ranks);
  ASSIGN_OR_RETURN(share.split,
                   SplitBudget(total_bytes, ranks, geometry, max_num_seqs, share.max_model_len));
  if (!asked) share.max_model_len = std::min(share.max_model_len, share.split.tokens_max);
  return share;
}

}  // namespace levin
