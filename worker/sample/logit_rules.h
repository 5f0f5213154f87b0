// Steps 3 to 6 of api.md 10.1 on one row of logits, in place. A token that is ruled out becomes
// -infinity; nothing here brings one back. Pure.
#pragma once

#include <limits>
#include <span>

#include "common/inference/sampling_params.h"
#include "worker/sample/token_history.h"

namespace levin {

inline constexpr float kMasked = -std::numeric_limits<float>::infinity();

// Allowed ids, bad sequences, min_tokens, bias; then the penalties
//   seen in prompt or output: logit > 0 ? logit / r : logit * r;   then - f * count - p * (count >
//   0)
// with the counts of the output alone. `index`: how many tokens the output has.
// `row`: [vocab]; ids in `params` lie within it.
void ApplyLogitRules(const SamplingParams& params, const TokenHistory& history, int64_t index,
                     std::span<float> row);

}  // namespace levin
