// What every rank's metrics need besides their families. See common/metrics/worker_metrics.h.
#pragma once

#include "common/config/options.h"
#include "common/log/log.h"
#include "common/metrics/worker_metrics.h"
#include "worker/process/exit_code.h"
#include "worker/process/startup_state.h"

namespace levin {

WorkerMetricsOptions MetricsOptions(const WorkerOptions& options);

void CountLog(const WorkerMetrics& metrics, LogLevel level);

// Start-up, drain, memory that is free: at each scrape.
void WriteProcessGauges(const WorkerMetrics& metrics, const StartupState& state, bool draining);

// One line at the end of the process.
void LogExit(int rank, const Exit& exit);

}  // namespace levin
