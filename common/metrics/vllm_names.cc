#include "common/metrics/vllm_names.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

namespace levin {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr std::string_view kModelName = "model_name";

struct Source {
  std::string_view family;
  std::string_view label;  // only metrics whose `label` is `value`; "": all
  std::string_view value;
};

// One metric of a vLLM family: the sum of some of ours.
struct Twin {
  const char* name;
  MetricType type;
  const char* help;
  std::vector<Source> sources;
  std::string_view finished_reason = {};  // adds that label
};

const std::vector<Twin>& Twins() {
  static const std::vector<Twin> twins = {
      {"vllm:num_requests_running",
       MetricType::Gauge,
       "Requests in prefill or decode.",
       {{"levin_inflight_requests", "phase", "prefill"},
        {"levin_inflight_requests", "phase", "decode"}}},
      {"vllm:num_requests_waiting",
       MetricType::Gauge,
       "Requests that wait.",
       {{"levin_inflight_requests", "phase", "queued"}}},
      {"vllm:prompt_tokens_total",
       MetricType::Counter,
       "Prompt tokens.",
       {{"levin_tokens_total", "kind", "prompt"}}},
      {"vllm:generation_tokens_total",
       MetricType::Counter,
       "Generated tokens.",
       {{"levin_tokens_total", "kind", "output"}}},
      {"vllm:prefix_cache_queries_total",
       MetricType::Counter,
       "Tokens looked up in the prefix cache.",
       {{"levin_tokens_total", "kind", "prompt"}}},
      {"vllm:prefix_cache_hits_total",
       MetricType::Counter,
       "Tokens resumed from the prefix cache.",
       {{"levin_tokens_total", "kind", "cached"}}},
      {"vllm:num_preemptions_total", MetricType::Counter, "Preemptions; there are none.", {}},
      {"vllm:request_success_total",
       MetricType::Counter,
       "Ended requests.",
       {{"levin_finish_total", "reason", "stop"}, {"levin_finish_total", "reason", "tool_calls"}},
       "stop"},
      {"vllm:request_success_total",
       MetricType::Counter,
       "Ended requests.",
       {{"levin_finish_total", "reason", "length"}},
       "length"},
      {"vllm:request_success_total",
       MetricType::Counter,
       "Ended requests.",
       {{"levin_finish_total", "reason", "cancelled"}},
       "abort"},
      {"vllm:time_to_first_token_seconds",
       MetricType::Histogram,
       "Time to the first token.",
       {{"levin_ttft_seconds", {}, {}}}},
      {"vllm:inter_token_latency_seconds",
       MetricType::Histogram,
       "Time between tokens.",
       {{"levin_itl_seconds", {}, {}}}},
      {"vllm:time_per_output_token_seconds",
       MetricType::Histogram,
       "Time between tokens, older name.",
       {{"levin_itl_seconds", {}, {}}}},
      {"vllm:e2e_request_latency_seconds",
       MetricType::Histogram,
       "Time of a whole request.",
       {{"levin_request_duration_seconds", "outcome", "ok"}}},
      {"vllm:request_queue_time_seconds",
       MetricType::Histogram,
       "Time in the queue.",
       {{"levin_queue_seconds", {}, {}}}},
      {"vllm:request_prefill_time_seconds",
       MetricType::Histogram,
       "Time in prefill.",
       {{"levin_prefill_seconds", {}, {}}}},
      {"vllm:request_decode_time_seconds",
       MetricType::Histogram,
       "Time in decode.",
       {{"levin_decode_seconds", {}, {}}}},
      {"vllm:request_prompt_tokens",
       MetricType::Histogram,
       "Prompt tokens per request.",
       {{"levin_prompt_tokens", {}, {}}}},
      {"vllm:request_generation_tokens",
       MetricType::Histogram,
       "Generated tokens per request.",
       {{"levin_output_tokens", {}, {}}}},
  };
  return twins;
}

std::string_view Label(const ClientMetric& metric, std::string_view name) {
  for (const ClientMetric::Label& label : metric.label) {
    if (label.name == name) return label.value;
  }
  return {};
}

const MetricFamily* Find(const std::vector<MetricFamily>& families, std::string_view name) {
  for (const MetricFamily& family : families) {
    if (family.name == name) return &family;
  }
  return nullptr;
}

void AddTo(ClientMetric& sum, const ClientMetric& metric) {
  sum.counter.value += metric.counter.value;
  sum.gauge.value += metric.gauge.value;
  sum.histogram.sample_count += metric.histogram.sample_count;
  sum.histogram.sample_sum += metric.histogram.sample_sum;
  if (sum.histogram.bucket.empty()) {
    sum.histogram.bucket = metric.histogram.bucket;
    return;
  }
  for (size_t i = 0; i < sum.histogram.bucket.size(); ++i) {
    sum.histogram.bucket[i].cumulative_count += metric.histogram.bucket[i].cumulative_count;
  }
}

ClientMetric Sum(const std::vector<MetricFamily>& families, const std::vector<Source>& sources) {
  ClientMetric sum;
  for (const Source& source : sources) {
    const MetricFamily* family = Find(families, source.family);
    if (family == nullptr) continue;
    for (const ClientMetric& metric : family->metric) {
      if (source.label.empty() || Label(metric, source.label) == source.value) AddTo(sum, metric);
    }
  }
  return sum;
}

double Share(double part, double whole) { return whole > 0 ? part / whole : 0; }

// State and KV together; with two regions the fuller one; over groups the fullest.
double CacheUsage(const std::vector<MetricFamily>& families) {
  struct Use {
    double reserved = 0, bytes = 0, used = 0, slots = 0;
  };
  std::map<std::string_view, Use> groups;
  if (const MetricFamily* family = Find(families, "levin_group_cache_bytes")) {
    for (const ClientMetric& metric : family->metric) {
      Use& use = groups[Label(metric, "group")];
      if (Label(metric, "kind") == "reserved") use.reserved += metric.gauge.value;
      use.bytes += metric.gauge.value;
    }
  }
  if (const MetricFamily* family = Find(families, "levin_group_state_slots")) {
    for (const ClientMetric& metric : family->metric) {
      Use& use = groups[Label(metric, "group")];
      if (Label(metric, "state") == "used") use.used += metric.gauge.value;
      use.slots += metric.gauge.value;
    }
  }
  double usage = 0;
  for (const auto& [group, use] : groups) {
    usage = std::max({usage, Share(use.reserved, use.bytes), Share(use.used, use.slots)});
  }
  return usage;
}

std::string_view ModelName(const std::vector<MetricFamily>& families) {
  for (const MetricFamily& family : families) {
    if (!family.metric.empty()) return Label(family.metric[0], kModelName);
  }
  return {};
}

}  // namespace

void AppendVllmFamilies(std::vector<MetricFamily>& families) {
  const std::string model(ModelName(families));
  std::vector<MetricFamily> added;
  const auto add = [&](const char* name, const char* help, MetricType type, ClientMetric metric) {
    metric.label.push_back({std::string(kModelName), model});
    if (added.empty() || added.back().name != name) added.push_back({name, help, type, {}});
    added.back().metric.push_back(std::move(metric));
  };
  for (const Twin& twin : Twins()) {
    ClientMetric metric = Sum(families, twin.sources);
    if (!twin.finished_reason.empty()) {
      metric.label.push_back({"finished_reason", std::string(twin.finished_reason)});
    }
    add(twin.name, twin.help, twin.type, std::move(metric));
  }
  ClientMetric usage;
  usage.gauge.value = CacheUsage(families);
  add("vllm:kv_cache_usage_perc", "Share of the cache in use, 0 to 1.", MetricType::Gauge, usage);
  add("vllm:gpu_cache_usage_perc", "The same under its older name.", MetricType::Gauge, usage);
  std::move(added.begin(), added.end(), std::back_inserter(families));
}

}  // namespace levin
