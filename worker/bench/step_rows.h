// Rows of a step with everything that a RowTable points at.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/backend/kernels.h"

namespace levin {

class StepRows final {
 public:
  // `tokens` from position `at` on, in this slot, with KV blocks from first_block on.
  void Add(int64_t at, int64_t tokens, int32_t slot, bool stepwise, int32_t first_block = 0) {
    for (int64_t t = 0; t < tokens; ++t) {
      token_row_.push_back(static_cast<int32_t>(slot_.size()));
      token_position_.push_back(at + t);
    }
    first_.push_back(static_cast<int32_t>(token_row_.size()));
    position_.push_back(at);
    slot_.push_back(slot);
    fresh_.push_back(at == 0);
    stepwise_.push_back(stepwise);
    const int64_t blocks = (at + tokens + kKvBlockTokens - 1) / kKvBlockTokens;
    for (int64_t i = 0; i < blocks; ++i) blocks_.push_back(first_block + static_cast<int32_t>(i));
    block_first_.push_back(static_cast<int32_t>(blocks_.size()));
  }
  RowTable table() const {
    return {first_,       position_, slot_,      fresh_,         stepwise_,
            block_first_, blocks_,   token_row_, token_position_};
  }

 private:
  std::vector<int32_t> first_{0}, slot_, block_first_{0}, blocks_, token_row_;
  std::vector<int64_t> position_, token_position_;
  std::vector<uint8_t> fresh_, stepwise_;
};

}  // namespace levin
