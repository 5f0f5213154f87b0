// The router's data under vLLM's names, so that existing boards, the Gateway API inference
// extension and routers read them unchanged. Derived at each scrape: nothing is counted twice.
// Includes prometheus-cpp: for the .cc files of this folder only.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

namespace levin {

void AppendVllmFamilies(std::vector<prometheus::MetricFamily>& families);

}  // namespace levin
