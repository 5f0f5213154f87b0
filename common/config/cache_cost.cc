#include "common/config/cache_cost.h"

#include <algorithm>
#include <limits>
#include <string>

#include "common/base/check.h"

namespace levin {
namespace {

int64_t CeilDiv(int64_t value, int64_t by) { return value / by + (value % by != 0); }

// How often `bytes` holds `each`; as often as one likes when it costs nothing.
int64_t Times(int64_t bytes, int64_t each) {
  return each == 0 ? std::numeric_limits<int32_t>::max() : bytes / each;
}

}  // namespace

CacheGeometry MakeCacheGeometry(const ModelConfig& config, int ranks, int kv_element_bytes) {
  constexpr int64_t kStateElementBytes = 4;
  const int64_t d = config.head_dim;
  CacheGeometry geometry;
  geometry.state_bytes_per_slot =
      config.lightning_layers() * (LocalHeads(config, ranks) * d * d * kStateElementBytes);
  geometry.kv_bytes_per_block = config.softmax_layers() * (2 * LocalKvHeads(config, ranks) * d) *
                                kv_element_bytes * geometry.block_tokens;
  return geometry;
}

int64_t BlocksFor(const CacheGeometry& geometry, int64_t prompt_tokens, int64_t max_new_tokens) {
  CHECK(prompt_tokens >= 0 && max_new_tokens >= 0, prompt_tokens, max_new_tokens);
  return CeilDiv(prompt_tokens + max_new_tokens, geometry.block_tokens);
}

int64_t RequestBytes(const CacheGeometry& geometry, int64_t prompt_tokens, int64_t max_new_tokens) {
  return geometry.state_bytes_per_slot +
         BlocksFor(geometry, prompt_tokens, max_new_tokens) * geometry.kv_bytes_per_block;
}

Result<CacheSplit> SplitBudget(int64_t total_bytes, int ranks, const CacheGeometry& geometry,
                               int64_t max_num_seqs, int64_t max_model_len) {
  CHECK(ranks >= 1, ranks);
  if (max_num_seqs < 1 || max_model_len < 1) {
    return Error(InvalidArgument("max-num-seqs is " + std::to_string(max_num_seqs) +
                                 " and max-model-len " + std::to_string(max_model_len) +
                                 ", expected at least 1 of both"));
  }
  const int64_t slot = geometry.state_bytes_per_slot;
  const int64_t block = geometry.kv_bytes_per_block;
  const int64_t budget = total_bytes / ranks;
  if (budget < slot + block) {
    return Error(ResourceExhausted(
        "the cache budget of " + std::to_string(total_bytes) + " bytes gives each of " +
        std::to_string(ranks) + " ranks " + std::to_string(std::max<int64_t>(budget, 0)) +
        " bytes; one sequence needs at least " + std::to_string(slot + block) + " (a state of " +
        std::to_string(slot) + " and one block of " + std::to_string(block) +
        "), so expected at least " + std::to_string((slot + block) * ranks)));
  }
  // The longest sequence first, then further ones that bring as many bytes of blocks as their state
  // takes (or a full length, when that is less).
  const int64_t full_length = BlocksFor(geometry, max_model_len, 0);
  const int64_t longest = std::min(full_length, Times(budget - slot, block));
  const int64_t share = block == 0 ? 0 : std::clamp<int64_t>(CeilDiv(slot, block), 1, full_length);
  const int64_t further = Times(budget - slot - longest * block, slot + share * block);
  CacheSplit split;
  split.slots = 1 + std::min(further, max_num_seqs - 1);
  // More blocks than every slot at full length could use would lie idle.
  const int64_t useful =
      std::min<int64_t>(std::numeric_limits<int32_t>::max(), full_length) * split.slots;
  split.blocks = std::min({Times(budget - split.slots * slot, block), useful,
                           int64_t{std::numeric_limits<int32_t>::max()}});
  split.bytes_per_rank = split.slots * slot + split.blocks * block;
  split.tokens_max = std::min(split.blocks * geometry.block_tokens, max_model_len);
  return split;
}

}  // namespace levin
