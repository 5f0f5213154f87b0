// The whole router: model texts, worker groups, HTTP and gRPC servers, put together, run until a
// signal, drained. One object per process.
#pragma once

#include <memory>

#include "common/config/options.h"

namespace levin {

// Exit codes of api.md 11.2.
inline constexpr int kExitOther = 1;
inline constexpr int kExitBadOptions = 2;
inline constexpr int kExitBadModel = 3;
inline constexpr int kExitPortInUse = 5;

// Serves until SIGTERM or SIGINT, then takes no new request, lets the others end within
// options.shutdown_timeout_ms, and returns 0; a second signal ends them at once. Says on stdout
// "levin-router: listening http://HOST:PORT grpc HOST:PORT" when it has its ports, and once
// "levin-router: ready ..." when the first healthy group is there. Other errors go to stderr.
int RunRouter(const RouterOptions& options);

}  // namespace levin
