// How a worker ends (operations.md 6): read by `levin serve` and by Kubernetes.
#pragma once

#include <utility>

#include "common/base/status.h"

namespace levin {

enum class ExitCode : int {
  kClean = 0,
  kOther = 1,
  kConfig = 2,      // arguments, configuration, a rank that does not fit its group
  kModel = 3,       // the model folder
  kMemory = 4,      // not enough of it; the message holds the plan
  kPort = 5,        // in use
  kGroupEnded = 6,  // a rank or the leader was lost: restart me
};

// Why a process cannot go on, and what it tells its supervisor.
struct Exit {
  ExitCode code = ExitCode::kOther;
  Status status;
};

template <typename T>
using OrExit = tl::expected<T, Exit>;

inline tl::unexpected<Exit> ExitWith(ExitCode code, Status status) {
  return tl::unexpected<Exit>(Exit{code, std::move(status)});
}

// For start-up steps that fail for one reason, or for lack of memory.
inline tl::unexpected<Exit> ExitFor(ExitCode code, Status status) {
  const bool memory = status.code() == Code::kResourceExhausted;
  return ExitWith(memory ? ExitCode::kMemory : code, std::move(status));
}

}  // namespace levin
