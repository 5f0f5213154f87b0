// A plan with its names resolved against a rank's sequence table: all that the network needs.
// T tokens in R rows; rows of one step belong to different sequences.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/types.h"

namespace levin {

struct StepBatch {
  std::vector<TokenId> tokens;        // [T]
  std::vector<int32_t> row_first;     // [R + 1]: row r owns tokens row_first[r] .. row_first[r + 1]
  std::vector<int64_t> row_position;  // [R]: position of the row's first token in its sequence
  std::vector<int32_t> row_slot;      // [R]: state slot
  std::vector<uint8_t> row_fresh;     // [R]: the slot starts from zero
  std::vector<uint8_t> row_stepwise;  // [R]: one-token form of lightning attention
  std::vector<int32_t> block_first;   // [R + 1]: into block_ids
  std::vector<int32_t> block_ids;     // KV blocks of each row's sequence, in order of position
  std::vector<int32_t> logit_tokens;  // indices into tokens whose logits are wanted, ascending

  int32_t token_count() const { return static_cast<int32_t>(tokens.size()); }
  int32_t row_count() const { return static_cast<int32_t>(row_slot.size()); }
};

}  // namespace levin
