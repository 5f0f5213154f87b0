// What /metrics says: facts of the groups read at each scrape, HTTP requests as they end.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/metrics/router_metrics.h"
#include "router/http/request_watch.h"
#include "router/rpc/grpc_engine_client.h"

namespace levin {

// Any thread.
class MetricsFeed final {
 public:
  using Groups = std::vector<std::unique_ptr<GrpcEngineClient>>;

  MetricsFeed(const std::string& model_name, size_t groups);

  void OnHttpEnd(const RequestEnd& end) const;
  void SetDraining() const { metrics_.process.draining().Set(1); }
  // A healthy group was seen for the first time: its facts.
  void OnFirstGroup(const GroupInfo& group, const Capacity& capacity, const std::string& dtype);
  // `reason`: as EpochEnd names it.
  void OnEpochEnd(size_t group, std::string_view reason) const;
  std::string Text(const Groups& groups, int grpc_streams) const;
  const RouterMetrics& metrics() const { return metrics_; }

 private:
  void ReadGroup(GroupIndex index, const GrpcEngineClient& group) const;

  RouterMetrics metrics_;
};

}  // namespace levin
