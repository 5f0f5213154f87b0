// What a row's penalties and bad sequences look at. Kept only where the parameters ask for it.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "common/base/types.h"

namespace levin {

struct TokenHistory {
  std::vector<TokenId> prompt;  // distinct ids, ascending; only where the repetition penalty is on
  std::vector<TokenId> output;  // all drawn ids, in order
  std::unordered_map<TokenId, int32_t> output_counts;

  void Add(TokenId token) {
    output.push_back(token);
    ++output_counts[token];
  }
};

}  // namespace levin
