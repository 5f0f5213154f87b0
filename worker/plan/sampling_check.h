// Are the parameters of a generation within their ranges and its ids within the vocabulary? The
// router checked; the leader checks again, and so does every rank.
#pragma once

#include <cstdint>

#include "common/base/status.h"
#include "common/inference/sampling_params.h"

namespace levin {

// kInvalidArgument that names field and value.
Status CheckSampling(const SamplingParams& params, int32_t vocab_size);

}  // namespace levin
