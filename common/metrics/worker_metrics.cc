#include "common/metrics/worker_metrics.h"

#include <vector>

namespace levin {
namespace {

std::vector<std::string> Ranks(int32_t world_size) {
  std::vector<std::string> ranks;
  for (int32_t rank = 0; rank < world_size; ++rank) ranks.push_back(std::to_string(rank));
  return ranks;
}

}  // namespace

LeaderFamilies::LeaderFamilies(MetricRegistry& registry)
    : sequences(registry, "levin_sequences"),
      state_slots(registry, "levin_state_slots"),
      cache_bytes(registry, "levin_cache_bytes"),
      steps(registry, "levin_steps_total"),
      step_duration(registry, "levin_step_duration_seconds"),
      step_prefill_tokens(registry, "levin_step_prefill_tokens"),
      step_sequences(registry, "levin_step_sequences"),
      plan_delivery(registry, "levin_plan_delivery_seconds"),
      connected_routers(registry, "levin_connected_routers"),
      epoch(registry, "levin_epoch"),
      rank_up(registry, "levin_rank_up"),
      rank_step_lag(registry, "levin_rank_step_lag"),
      heartbeat_age(registry, "levin_heartbeat_age_seconds"),
      digest_interval_steps(registry, "levin_digest_interval_steps") {}

WorkerMetrics::WorkerMetrics(const WorkerMetricsOptions& options)
    : registry_({.constant_labels = {{"model_name", options.model_name},
                                     {"group", options.group},
                                     {"rank", std::to_string(options.rank)}},
                 .start_values = {{"peer", Ranks(options.world_size)}}}),
      process(registry_),
      collective_wait(registry_, "levin_collective_wait_seconds"),
      device_memory_bytes(registry_, "levin_device_memory_bytes") {
  if (options.rank == 0) leader.emplace(registry_);
}

void WorkerMetrics::SetModelInfo(const std::string& digest, const std::string& dtype) {
  registry_.AddInfo("levin_model_info", "The model that is served.",
                    {{"digest", digest}, {"dtype", dtype}});
}

}  // namespace levin
