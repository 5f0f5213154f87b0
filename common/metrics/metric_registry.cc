#include "common/metrics/metric_registry.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>

#include "common/metrics/process_metrics.h"
#include "common/metrics/vllm_names.h"

namespace levin {

void Counter::Add(double amount) const { metric_->Increment(amount); }
double Counter::value() const { return metric_->Value(); }
void Gauge::Set(double value) const { metric_->Set(value); }
void Gauge::Add(double amount) const { metric_->Increment(amount); }
double Gauge::value() const { return metric_->Value(); }
void Histogram::Observe(double value) const { metric_->Observe(value); }

struct MetricRegistry::Impl {
  const MetricRegistryOptions options;
  prometheus::Registry registry;
};

MetricRegistry::MetricRegistry(MetricRegistryOptions options)
    : impl_(new Impl{.options = std::move(options), .registry = prometheus::Registry()}) {}

MetricRegistry::~MetricRegistry() = default;

std::string MetricRegistry::Serialize() const {
  std::vector<prometheus::MetricFamily> families = impl_->registry.Collect();
  if (impl_->options.vllm_names) AppendVllmFamilies(families);
  AppendProcessFamilies(impl_->options.constant_labels, families);
  return prometheus::TextSerializer().Serialize(families);
}

void MetricRegistry::AddInfo(std::string_view name, std::string_view help,
                             const std::map<std::string, std::string>& facts) {
  prometheus::BuildGauge()
      .Name(std::string(name))
      .Help(std::string(help))
      .Labels(impl_->options.constant_labels)
      .Register(impl_->registry)
      .Add(facts)
      .Set(1);
}

std::vector<std::string> MetricRegistry::Values(const LabelSet& label) const {
  if (!label.values.empty()) return {label.values.begin(), label.values.end()};
  const auto found = impl_->options.start_values.find(label.name);
  CHECK(found != impl_->options.start_values.end(), "no values were given for label", label.name);
  return found->second;
}

std::vector<void*> MetricRegistry::AddFamily(const MetricSpec& spec) {
  std::vector<std::map<std::string, std::string>> all = {{}};
  for (const LabelSet* label : spec.labels) {
    if (label == nullptr) break;
    std::vector<std::map<std::string, std::string>> longer;
    for (const auto& labels : all) {
      for (const std::string& value : Values(*label)) {
        longer.push_back(labels);
        longer.back().emplace(label->name, value);
      }
    }
    all = std::move(longer);
  }
  const auto add = [&](auto builder, auto... arguments) {
    auto& family = builder.Name(std::string(spec.name))
                       .Help(std::string(spec.help))
                       .Labels(impl_->options.constant_labels)
                       .Register(impl_->registry);
    std::vector<void*> metrics;
    for (const auto& labels : all) metrics.push_back(&family.Add(labels, arguments...));
    return metrics;
  };
  switch (spec.type) {
    case MetricType::kCounter:
      return add(prometheus::BuildCounter());
    case MetricType::kGauge:
      return add(prometheus::BuildGauge());
    case MetricType::kHistogram:
      break;
  }
  return add(prometheus::BuildHistogram(),
             prometheus::Histogram::BucketBoundaries(spec.buckets.begin(), spec.buckets.end()));
}

void CheckMetricUse(const MetricSpec& spec, MetricType type,
                    std::span<const LabelSet* const> labels) {
  CHECK(spec.type == type, spec.name);
  const auto end = std::find(spec.labels.begin(), spec.labels.end(), nullptr);
  CHECK(std::equal(spec.labels.begin(), end, labels.begin(), labels.end()), spec.name);
}

}  // namespace levin
