// May this generation ever run here? The leader's final word on lengths, ids and memory; the router
// asked the same questions before. Pure.
#pragma once

#include "common/base/status.h"
#include "common/inference/generation.h"
#include "worker/schedule/scheduler.h"

namespace levin {

// kInvalidArgument: INVALID_FIELD, CONTEXT_LENGTH_EXCEEDED (over the model) or CACHE_NEVER_FITS
// (over this deployment's pool), with the numbers.
Status CheckGeneration(const Generation& generation, const SchedulerOptions& options);

}  // namespace levin
