#include "worker/process/rank_metrics.h"

#include <xxhash.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "worker/process/host_resources.h"

namespace levin {
namespace {

// The same on every rank that is told the same Group address. A label holds no addresses, hence its
// hash.
std::string GroupName(const WorkerOptions& options) {
  const std::string& address =
      options.rank == 0 && options.leader.empty() ? options.group_listen : options.leader;
  char name[9] = {};
  std::snprintf(name, sizeof name, "%08x",
                static_cast<uint32_t>(XXH3_64bits(address.data(), address.size())));
  return name;
}

}  // namespace

WorkerMetricsOptions MetricsOptions(const WorkerOptions& options) {
  const std::filesystem::path model = std::filesystem::absolute(options.model).lexically_normal();
  return {.model_name = (model.has_filename() ? model : model.parent_path()).filename().string(),
          .group = GroupName(options),
          .rank = options.rank,
          .world_size = options.world_size};
}

void CountLog(const WorkerMetrics& metrics, LogLevel level) {
  metrics.process.log_messages(static_cast<LoggedLevel>(level)).Add();
}

void WriteProcessGauges(const WorkerMetrics& metrics, const StartupState& state, bool draining) {
  const int64_t total = state.bytes_total;
  const double done = static_cast<double>(state.bytes_done.load());
  metrics.process.SetPhase(state.phase);
  metrics.process.startup_progress().Set(total > 0 ? done / static_cast<double>(total) : 0);
  metrics.process.draining().Set(draining ? 1 : 0);
  metrics.device_memory_bytes(MemoryKind::kFree).Set(static_cast<double>(AvailableBytes()));
}

void LogExit(int rank, const Exit& exit) {
  const bool clean = exit.code == ExitCode::kClean;
  Log(clean ? LogLevel::kInfo : LogLevel::kError, "end",
      {{"rank", rank}, {"exit_code", static_cast<int>(exit.code)}, {"why", exit.status.message()}});
}

}  // namespace levin
