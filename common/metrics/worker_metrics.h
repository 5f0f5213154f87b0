// The families of a rank; those of the leader exist on rank 0 only. Any thread may use any member.
// Meanings: common/metrics/metric_table.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/metrics/metric_registry.h"
#include "common/metrics/process_families.h"

namespace levin {

struct WorkerMetricsOptions {
  std::string model_name;
  std::string group;
  int32_t rank = 0;
  int32_t world_size = 1;
};

struct LeaderFamilies {
  explicit LeaderFamilies(MetricRegistry& registry);

  MetricFamily<Gauge, SequenceState> sequences;
  MetricFamily<Gauge, SlotState> state_slots;
  MetricFamily<Gauge, CacheKind> cache_bytes;
  MetricFamily<Counter, StepKind> steps;
  MetricFamily<Histogram, StepKind> step_duration;
  MetricFamily<Histogram> step_prefill_tokens;
  MetricFamily<Histogram> step_sequences;
  MetricFamily<Histogram> plan_delivery;
  MetricFamily<Gauge> connected_routers;
  MetricFamily<Gauge> epoch;
  MetricFamily<Gauge, PeerRank> rank_up;
  MetricFamily<Gauge, PeerRank> rank_step_lag;
  MetricFamily<Gauge, PeerRank> heartbeat_age;
  MetricFamily<Gauge> digest_interval_steps;
};

class WorkerMetrics final {
  MetricRegistry registry_;  // before the families, which are registered in it

 public:
  explicit WorkerMetrics(const WorkerMetricsOptions& options);

  // Body of /metrics; its type is kMetricsContentType.
  std::string Serialize() const { return registry_.Serialize(); }

  // Once, when the weights are known.
  void SetModelInfo(const std::string& digest, const std::string& dtype);

  ProcessFamilies process;
  MetricFamily<Histogram> collective_wait;
  MetricFamily<Gauge, MemoryKind> device_memory_bytes;
  std::optional<LeaderFamilies> leader;  // rank 0
};

}  // namespace levin
