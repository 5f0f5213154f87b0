// levin-worker: one rank of a worker group. Rank 0 leads.
#include <cstdio>

#include "common/config/options.h"
#include "common/log/log.h"
#include "worker/process/emergency.h"
#include "worker/process/follower_process.h"
#include "worker/process/leader_process.h"
#include "worker/process/watch.h"

int main(int argc, char** argv) {
  using namespace levin;
  Watch::BlockSignals();
  const Result<Parsed<WorkerOptions>> parsed = ParseWorkerOptions(argc, argv);
  if (!parsed) {
    std::fprintf(stderr, "levin-worker: error: %s\n", parsed.error().message().c_str());
    return static_cast<int>(ExitCode::kConfig);
  }
  if (!parsed->help.empty()) {
    std::fputs(parsed->help.c_str(), stdout);
    return static_cast<int>(ExitCode::kClean);
  }
  const WorkerOptions& options = parsed->options;
  if (Status log = StartLog(options.log.level, options.log.format, "worker"); !log.ok()) {
    std::fprintf(stderr, "levin-worker: error: %s\n", log.message().c_str());
    return static_cast<int>(ExitCode::kConfig);
  }
  const Exit exit = options.rank == 0 ? RunLeader(options) : RunFollower(options);
  ReportExit(options.rank, exit);
  return static_cast<int>(exit.code);
}
