#include "worker/process/rank_metrics.h"

#include <filesystem>

#include "worker/process/host_resources.h"

namespace levin {

WorkerMetricsOptions MetricsOptions(const WorkerOptions& options) {
  const std::filesystem::path model = std::filesystem::absolute(options.model).lexically_normal();
  return {.model_name = (model.has_filename() ? model : model.parent_path()).filename().string(),
          .group = options.rank == 0 ? options.group_listen : options.leader,
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

}  // namespace levin
