// What the leader tells a router in the Handshake; constant during an epoch. Plain data.
#pragma once

#include <cstdint>
#include <string>

namespace levin {

struct EngineFacts {
  std::string group_id;
  uint64_t tokenizer_hash = 0;
  uint64_t model_digest = 0;
  int32_t lightning_layers = 0, softmax_layers = 0, heads = 0;
  int32_t block_tokens = 64;
  int64_t bytes_per_block = 0, bytes_per_slot = 0;  // of the whole group
  int32_t ranks = 1;
  int32_t vocab_size = 0;
  int64_t max_model_len = 0;
  int64_t max_new_tokens = 0;
  int32_t max_num_seqs = 0;
};

}  // namespace levin
