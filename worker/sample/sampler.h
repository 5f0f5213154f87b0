// From one row of raw logits to one token, by the order of api.md 10.1. Pure: a token depends on
// (logits, parameters, history, output index) alone, never on slot, neighbours or chunking, so
// every rank draws the same one. One thread per object (it owns scratch memory of one row).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/types.h"
#include "common/inference/generation.h"
#include "common/inference/sampling_params.h"
#include "worker/sample/token_history.h"

namespace levin {

struct Draw {
  SampledToken token;
  // NaN or +inf among the logits, or the parameters leave no token: `token` means nothing.
  bool numeric_fault = false;
};

class Sampler final {
 public:
  // `defined`: [vocab], the ids that exist; others are never drawn and never listed. Empty: all.
  Sampler(int32_t vocab_size, const std::vector<bool>& defined);

  // `logits`: [vocab], raw; left as they are. `index`: of the token in its output, from 0.
  Draw Sample(std::span<const float> logits, const SamplingParams& params,
              const TokenHistory& history, int64_t index);

 private:
  std::vector<TokenId> undefined_;  // ascending
  std::vector<float> row_;          // [vocab]
};

}  // namespace levin
