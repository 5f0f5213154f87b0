// What a reply says about likelihood: log-softmax of the raw logits, summed in one fixed order.
// Pure.
#pragma once

#include <cstdint>
#include <span>

#include "common/inference/generation.h"

namespace levin {

// Fills logprob, rank and the `k` best of token.token. `row`: [vocab], raw logits with undefined
// ids masked; those are never listed. Of equal logits the lower id is the better one.
void FillLogprobs(std::span<const float> row, int32_t k, SampledToken& token);

}  // namespace levin
