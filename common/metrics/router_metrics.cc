#include "common/metrics/router_metrics.h"

namespace levin {

RouterMetrics::RouterMetrics(const RouterMetricsOptions& options)
    : registry_({.constant_labels = {{"model_name", options.model_name}},
                 .start_values = {{"group", options.groups}},
                 .vllm_names = options.vllm_names}),
      process(registry_),
      requests(registry_, "levin_requests_total"),
      finish(registry_, "levin_finish_total"),
      rejections(registry_, "levin_rejections_total"),
      client_disconnects(registry_, "levin_client_disconnects_total"),
      inflight_requests(registry_, "levin_inflight_requests"),
      open_streams(registry_, "levin_open_streams"),
      queue_depth(registry_, "levin_queue_depth"),
      request_duration(registry_, "levin_request_duration_seconds"),
      ttft(registry_, "levin_ttft_seconds"),
      itl(registry_, "levin_itl_seconds"),
      stream_stall(registry_, "levin_stream_stall_seconds"),
      queue_seconds(registry_, "levin_queue_seconds"),
      prefill_seconds(registry_, "levin_prefill_seconds"),
      decode_seconds(registry_, "levin_decode_seconds"),
      stage_duration(registry_, "levin_stage_duration_seconds"),
      prompt_tokens(registry_, "levin_prompt_tokens"),
      output_tokens(registry_, "levin_output_tokens"),
      cached_tokens(registry_, "levin_cached_tokens"),
      tokens(registry_, "levin_tokens_total"),
      tokens_per_frame(registry_, "vllm:iteration_tokens_total"),
      group_up(registry_, "levin_group_up"),
      group_cache_bytes(registry_, "levin_group_cache_bytes"),
      group_state_slots(registry_, "levin_group_state_slots"),
      group_sequences(registry_, "levin_group_sequences"),
      epoch_ends(registry_, "levin_epoch_ends_total"),
      finished_unacked(registry_, "levin_finished_unacked"),
      finished_unacked_age(registry_, "levin_finished_unacked_age_seconds"),
      cancel_to_free(registry_, "levin_cancel_to_free_seconds"),
      http_requests(registry_, "http_requests_total"),
      http_request_duration(registry_, "http_request_duration_seconds") {}

void RouterMetrics::SetModelInfo(const std::string& digest, const std::string& dtype) {
  registry_.AddInfo("levin_model_info", "The model that is served.",
                    {{"digest", digest}, {"dtype", dtype}});
}

void RouterMetrics::SetCacheConfig(int64_t block_tokens, int64_t blocks) {
  registry_.AddInfo(
      "vllm:cache_config_info", "Geometry of the cache.",
      {{"block_size", std::to_string(block_tokens)}, {"num_gpu_blocks", std::to_string(blocks)}});
}

void RouterMetrics::CountHttp(Route route, Method method, int status, double seconds) const {
  http_requests(route, method, ToStatusGroup(status)).Add();
  http_request_duration(route).Observe(seconds);
}

}  // namespace levin
