// Families of the table, registered and counted. Handles are small, may be copied and used from any
// thread, and must not outlive the registry. prometheus-cpp stays in the .cc files of this folder.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/metrics/metric_labels.h"
#include "common/metrics/metric_table.h"

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace levin {

class Counter final {
 public:
  static constexpr MetricType kType = MetricType::kCounter;
  explicit Counter(void* metric) : metric_(static_cast<prometheus::Counter*>(metric)) {}
  void Add(double amount = 1) const;
  double value() const;

 private:
  prometheus::Counter* metric_;
};

class Gauge final {
 public:
  static constexpr MetricType kType = MetricType::kGauge;
  explicit Gauge(void* metric) : metric_(static_cast<prometheus::Gauge*>(metric)) {}
  void Set(double value) const;
  void Add(double amount) const;
  double value() const;

 private:
  prometheus::Gauge* metric_;
};

class Histogram final {
 public:
  static constexpr MetricType kType = MetricType::kHistogram;
  explicit Histogram(void* metric) : metric_(static_cast<prometheus::Histogram*>(metric)) {}
  void Observe(double value) const;

 private:
  prometheus::Histogram* metric_;
};

struct MetricRegistryOptions {
  std::map<std::string, std::string> constant_labels;  // model_name, group, rank
  std::map<std::string, std::vector<std::string>, std::less<>>
      start_values;         // of labels without fixed ones
  bool vllm_names = false;  // the same data under vLLM's names too
};

class MetricRegistry final {
 public:
  explicit MetricRegistry(MetricRegistryOptions options);
  ~MetricRegistry();

  // Prometheus text format 0.0.4.
  std::string Serialize() const;

  // A gauge of value 1 that carries facts as labels, e.g. levin_build_info. Once per name and
  // facts.
  void AddInfo(std::string_view name, std::string_view help,
               const std::map<std::string, std::string>& facts);

  // All metrics of a family, in row-major order of the values of its labels.
  std::vector<void*> AddFamily(const MetricSpec& spec);
  std::vector<std::string> Values(const LabelSet& label) const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

inline constexpr char kMetricsContentType[] = "text/plain; version=0.0.4; charset=utf-8";

// A family used otherwise than the table says is our own mistake (CHECK).
void CheckMetricUse(const MetricSpec& spec, MetricType type,
                    std::span<const LabelSet* const> labels);

// A family whose labels are checked by the compiler: steps(StepKind::kDecode).Add().
template <typename Handle, typename... Labels>
class MetricFamily final {
 public:
  MetricFamily(MetricRegistry& registry, std::string_view name)
      : counts_{registry.Values(LabelOf(Labels{})).size()...} {
    const MetricSpec& spec = FindMetric(name);
    const std::array<const LabelSet*, sizeof...(Labels)> labels = {&LabelOf(Labels{})...};
    CheckMetricUse(spec, Handle::kType, labels);
    for (void* metric : registry.AddFamily(spec)) handles_.emplace_back(metric);
  }

  const Handle& operator()(Labels... labels) const {
    const std::array<size_t, sizeof...(Labels)> indices = {static_cast<size_t>(labels)...};
    size_t index = 0;
    for (size_t i = 0; i < indices.size(); ++i) index = index * counts_[i] + indices[i];
    CHECK_LT(index, handles_.size());
    return handles_[index];
  }

 private:
  std::array<size_t, sizeof...(Labels)> counts_;
  std::vector<Handle> handles_;
};

}  // namespace levin
