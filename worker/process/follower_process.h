// Ranks 1 .. N-1 from their options to their exit code.
#pragma once

#include "common/config/options.h"
#include "worker/process/exit_code.h"

namespace levin {

// Runs until the leader shuts the group down (kClean) or it is lost (kGroupEnded). Prints
// "levin-worker: rank R ready ..." on stdout. Watch::BlockSignals must have been called before any
// thread was started.
Exit RunFollower(const WorkerOptions& options);

}  // namespace levin
