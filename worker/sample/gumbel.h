// The draw of api.md 10.3: argmax(logit + Gumbel noise), which picks token i with probability
// softmax(logits)_i. The noise is a function of (seed, output index, token id) alone. Pure.
#pragma once

#include <cstdint>
#include <span>

#include "common/base/types.h"
#include "worker/sample/filter.h"

namespace levin {

// -log(-log(u)), u in (0, 1) from 32 bits: between -3.2 and kGumbelMax.
inline constexpr double kGumbelMax = 22.9;
double GumbelNoise(uint64_t seed, int64_t index, TokenId token);

// `candidates`: not empty. Of equal sums the candidate that comes first.
TokenId DrawGumbel(std::span<const Candidate> candidates, uint64_t seed, int64_t index);

}  // namespace levin
