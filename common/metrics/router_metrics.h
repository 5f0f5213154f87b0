// The families of a router. Any thread may use any member: metrics.requests(Api::kChat,
// RequestClass::kDefault, ToHttpCode(429)).Add(). Meanings: common/metrics/metric_table.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/metrics/metric_registry.h"
#include "common/metrics/process_families.h"

namespace levin {

struct RouterMetricsOptions {
  std::string model_name;
  std::vector<std::string> groups;  // GroupIndex counts in this order
  bool vllm_names = true;
};

class RouterMetrics final {
  MetricRegistry registry_;  // before the families, which are registered in it

 public:
  explicit RouterMetrics(const RouterMetricsOptions& options);

  // Body of /metrics; its type is kMetricsContentType.
  std::string Serialize() const { return registry_.Serialize(); }

  // Facts of the handshake, once.
  void SetModelInfo(const std::string& digest, const std::string& dtype);
  void SetCacheConfig(int64_t block_tokens, int64_t blocks);

  // One HTTP request at its end.
  void CountHttp(Route route, Method method, int status, double seconds) const;

  ProcessFamilies process;

  MetricFamily<Counter, Api, RequestClass, HttpCode> requests;
  MetricFamily<Counter, FinishLabel> finish;
  MetricFamily<Counter, RejectReason, RequestClass> rejections;
  MetricFamily<Counter, Phase> client_disconnects;
  MetricFamily<Gauge, Phase> inflight_requests;
  MetricFamily<Gauge, Transport> open_streams;
  MetricFamily<Gauge, RequestClass> queue_depth;

  MetricFamily<Histogram, Api, Outcome> request_duration;
  MetricFamily<Histogram, CachedPart> ttft;
  MetricFamily<Histogram> itl;
  MetricFamily<Histogram> stream_stall;
  MetricFamily<Histogram, RequestClass> queue_seconds;
  MetricFamily<Histogram> prefill_seconds;
  MetricFamily<Histogram> decode_seconds;
  MetricFamily<Histogram, Stage> stage_duration;

  MetricFamily<Histogram> prompt_tokens;
  MetricFamily<Histogram> output_tokens;
  MetricFamily<Histogram> cached_tokens;
  MetricFamily<Counter, TokenKind> tokens;
  MetricFamily<Histogram> tokens_per_frame;

  MetricFamily<Gauge, GroupIndex> group_up;
  MetricFamily<Gauge, GroupIndex, GroupCacheKind> group_cache_bytes;
  MetricFamily<Gauge, GroupIndex, SlotState> group_state_slots;
  MetricFamily<Gauge, GroupIndex, SequenceState> group_sequences;
  MetricFamily<Counter, GroupIndex, EpochEndReason> epoch_ends;
  MetricFamily<Gauge> finished_unacked;
  MetricFamily<Gauge> finished_unacked_age;
  MetricFamily<Histogram> cancel_to_free;

  MetricFamily<Counter, Route, Method, StatusGroup> http_requests;
  MetricFamily<Histogram, Route> http_request_duration;
};

}  // namespace levin
