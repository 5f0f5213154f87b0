// A plan as bytes for the other ranks: versioned, little-endian, one form per plan (decoding and
// encoding again gives the same bytes).
#pragma once

#include <string>
#include <string_view>

#include "common/base/status.h"
#include "worker/plan/batch_plan.h"

namespace levin {

inline constexpr uint16_t kPlanVersion = 1;

std::string EncodePlan(const BatchPlan& plan);

// Bytes come over a wire: every length, range and flag is checked before it is used (ranges lie in
// their arrays); what the ids mean is the sequence table's to check. kInvalidArgument with the
// offset, kFailedPrecondition for another version.
Result<BatchPlan> DecodePlan(std::string_view bytes);

}  // namespace levin
