#include "worker/process/rank_start.h"

#include <string>
#include <utility>

namespace levin {

OrExit<RankInput> ReadRankInput(const WorkerOptions& options) {
  RankInput input;
  OrExit<ModelFolder> folder = ReadModelFolder(options);
  if (!folder) return tl::unexpected(std::move(folder).error());
  input.folder = *std::move(folder);
  if (options.eval_job.empty()) return input;
  Result<EvalJob> job = ReadEvalJob(options.eval_job);
  if (!job) return ExitWith(ExitCode::kConfig, std::move(job).error());
  input.job = *std::move(job);
  return input;
}

OrExit<std::unique_ptr<HttpServer>> OpenHealth(const WorkerOptions& options, HealthSource source) {
  if (options.metrics_port < 0) return nullptr;
  auto health = StartHealthServer(options.metrics_host, options.metrics_port, std::move(source));
  if (!health) return ExitWith(ExitCode::kPort, std::move(health).error());
  return *std::move(health);
}

OrExit<std::unique_ptr<Watch>> StartWatch(std::function<void()> on_tick,
                                          std::function<void(int)> on_signal) {
  auto watch = Watch::Start(std::move(on_tick), std::move(on_signal));
  if (!watch) return ExitWith(ExitCode::kOther, std::move(watch).error());
  return *std::move(watch);
}

std::function<void(int64_t, int64_t)> ProgressInto(StartupState& state) {
  return [&state](int64_t done, int64_t total) {
    state.bytes_done = done;
    state.bytes_total = total;
  };
}

std::string MetricsAddress(const WorkerOptions& options, const HttpServer* health) {
  if (health == nullptr) return {};
  return " metrics=" + options.metrics_host + ":" + std::to_string(health->port());
}

}  // namespace levin
