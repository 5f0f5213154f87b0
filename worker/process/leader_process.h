// Rank 0 from its options to its exit code: services, the other ranks, weights, the engine's loop,
// and an orderly end. Everything about the order of a start-up is in leader_process.cc.
#pragma once

#include "common/config/options.h"
#include "worker/process/exit_code.h"

namespace levin {

// Runs until the process is to end. Prints "levin-worker: rank 0 ready engine=... ..." on stdout.
// Watch::BlockSignals must have been called before any thread was started.
Exit RunLeader(const WorkerOptions& options);

}  // namespace levin
