// process_* as every Prometheus client library exports them, read from /proc at each scrape.
// Includes prometheus-cpp: for the .cc files of this folder only.
#pragma once

#include <prometheus/metric_family.h>

#include <map>
#include <string>
#include <vector>

namespace levin {

void AppendProcessFamilies(const std::map<std::string, std::string>& constant_labels,
                           std::vector<prometheus::MetricFamily>& families);

}  // namespace levin
