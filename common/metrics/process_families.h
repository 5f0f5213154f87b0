// What every process exports.
#pragma once

#include <string>

#include "common/metrics/metric_registry.h"

namespace levin {

struct ProcessFamilies {
  explicit ProcessFamilies(MetricRegistry& registry);

  // 1 for `phase`, 0 for the others.
  void SetPhase(StartupPhase phase) const;

  MetricFamily<Gauge> startup_progress;
  MetricFamily<Gauge, StartupPhase> startup_phase;
  MetricFamily<Gauge> draining;
  MetricFamily<Counter, LoggedLevel> log_messages;
};

}  // namespace levin
