// What a request costs: the one cost function of planner, router and allocator (protocol.md 2).
// Two kinds of memory: a slot holds the lightning states of one sequence, whatever its length; a
// block holds the keys and values of 64 tokens. All bytes are one rank's.
#pragma once

#include <cstdint>

#include "common/base/status.h"
#include "common/config/model_config.h"

namespace levin {

struct CacheGeometry {
  int32_t block_tokens = 64;
  int64_t state_bytes_per_slot = 0;  // lightning layers * local heads * d * d * 4: always fp32
  int64_t kv_bytes_per_block = 0;  // softmax layers * 2 * local KV heads * d * width * block_tokens

  bool operator==(const CacheGeometry&) const = default;
};

// `ranks` legal for the model; kv_element_bytes: 2 for bfloat16, 4 for float32.
CacheGeometry MakeCacheGeometry(const ModelConfig& config, int ranks, int kv_element_bytes);

// ceil((prompt + max_new) / block_tokens): what one sequence needs when it is as long as it may
// become. Arguments >= 0; exact for any sum below 2^63.
int64_t BlocksFor(const CacheGeometry& geometry, int64_t prompt_tokens, int64_t max_new_tokens);

// Bytes on one rank of a sequence at its longest: one slot and its blocks.
int64_t RequestBytes(const CacheGeometry& geometry, int64_t prompt_tokens, int64_t max_new_tokens);

// Two regions whose border is fixed at start.
struct CacheSplit {
  int64_t slots = 0;
  int64_t blocks = 0;
  int64_t bytes_per_rank = 0;  // of both regions; never more than total_bytes / ranks
  int64_t tokens_max = 0;      // longest sequence that the blocks hold

  bool operator==(const CacheSplit&) const = default;
};

// Splits the whole group's bytes. One sequence of max_model_len comes first where it fits; then as
// many further slots as max_num_seqs asks for, as long as states take at most half of what is left
// (a slot without blocks serves nobody); the rest is blocks. A budget that cannot hold
// max_model_len still works for shorter sequences: tokens_max says how long. kResourceExhausted
// with the numbers when not even one sequence of one block fits.
Result<CacheSplit> SplitBudget(int64_t total_bytes, int ranks, const CacheGeometry& geometry,
                               int64_t max_num_seqs, int64_t max_model_len);

}  // namespace levin
