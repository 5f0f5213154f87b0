// The one list of metric families: name, type, who exports it, labels, buckets, help. Registration,
// documentation and rules are checked against it; a renamed family keeps its old name for two
// minor versions.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/metrics/metric_labels.h"

namespace levin {

enum class MetricType : uint8_t { kCounter, kGauge, kHistogram };

enum class Exporter : uint8_t {
  kRouter,
  kLeader,  // rank 0
  kRank,    // every rank, the leader too
  kAll,     // routers and ranks
};

inline constexpr size_t kMetricLabelsMax = 3;

struct MetricSpec {
  std::string_view name;
  MetricType type = MetricType::kCounter;
  Exporter by = Exporter::kAll;
  std::array<const LabelSet*, kMetricLabelsMax> labels = {};  // from the front, then null
  std::span<const double> buckets;                            // upper edges, histograms only
  std::string_view help;
};

std::span<const MetricSpec> MetricTable();

// Our own mistake (CHECK) when there is none of that name.
const MetricSpec& FindMetric(std::string_view name);

}  // namespace levin
