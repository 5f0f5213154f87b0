// How a generation's tokens are chosen and when it ends by id. Meaning, order and ranges:
// api.md 10. Plain data; checked by the router, checked again by the leader.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/types.h"

namespace levin {

struct SamplingParams {
  float temperature = 1.0f;  // < 1e-5: greedy
  float top_p = 1.0f;        // (0, 1]
  int32_t top_k = 0;         // 0: off
  float min_p = 0.0f;        // [0, 1]
  float repetition_penalty = 1.0f;
  float frequency_penalty = 0.0f;
  float presence_penalty = 0.0f;
  uint64_t seed = 0;                                  // always set; choice j draws with seed + j
  std::vector<std::pair<TokenId, float>> logit_bias;  // added to the logit
  std::vector<TokenId> allowed_ids;                   // empty: all
  std::vector<std::vector<TokenId>> bad_sequences;    // never completed
  std::vector<TokenId> stop_ids;                      // the end token among them, unless ignore_eos
  int32_t min_tokens = 0;                             // until reached the stop ids are masked
  int32_t logprobs = -1;  // -1: none; k >= 0: the chosen token's and the k best

  bool greedy() const { return temperature < 1e-5f; }
  // Does a rank need the ids of prompt and output to sample?
  bool counts_tokens() const {
    return repetition_penalty != 1.0f || frequency_penalty != 0.0f || presence_penalty != 0.0f ||
           !bad_sequences.empty();
  }
  bool operator==(const SamplingParams&) const = default;
};

}  // namespace levin
