// What the leader and its followers do alike around start-up and end.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/config/options.h"
#include "common/rpc/limits.h"
#include "worker/engine/eval_job.h"
#include "worker/process/exit_code.h"
#include "worker/process/health_server.h"
#include "worker/process/model_folder.h"
#include "worker/process/startup_state.h"
#include "worker/process/watch.h"

namespace levin {

inline constexpr Duration kStall{std::chrono::milliseconds(kRendezvousStallMs)};
inline constexpr Duration kLastWords = std::chrono::seconds(1);   // for them to leave
inline constexpr Duration kLeaveLimit = std::chrono::seconds(5);  // after a loss, to notice it

inline TimePoint In(Duration duration) { return std::chrono::steady_clock::now() + duration; }

// The files that a rank reads before it meets the others.
struct RankInput {
  ModelFolder folder;
  std::optional<EvalJob> job;  // of levin eval
};
OrExit<RankInput> ReadRankInput(const WorkerOptions& options);

// nullptr where no port was asked for.
OrExit<std::unique_ptr<HttpServer>> OpenHealth(const WorkerOptions& options, HealthSource source);
OrExit<std::unique_ptr<Watch>> StartWatch(std::function<void()> on_tick,
                                          std::function<void(int)> on_signal);

// For LoadRankWeights: what it has read shows in `state`, which must outlive it.
std::function<void(int64_t, int64_t)> ProgressInto(StartupState& state);

// " metrics=HOST:PORT" for the ready line, "" without a server.
std::string MetricsAddress(const WorkerOptions& options, const HttpServer* health);

// The steps of a start-up one after the other, up to the first that fails.
template <typename Process>
OrExit<void> InOrder(Process& process, std::initializer_list<OrExit<void> (Process::*)()> steps) {
  for (const auto step : steps) {
    if (OrExit<void> done = (process.*step)(); !done) return done;
  }
  return {};
}

}  // namespace levin
