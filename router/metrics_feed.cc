#include "router/metrics_feed.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

namespace levin {
namespace {

std::vector<std::string> GroupNames(size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

// Paths that a client makes up share one label value.
Route RouteOf(std::string_view path) {
  constexpr std::string_view kModel = "/v1/models/";
  if (path.size() > kModel.size() && path.starts_with(kModel)) return Route::kModel;
  const auto* found = std::find(std::begin(kRouteValues), std::end(kRouteValues), path);
  if (found == std::end(kRouteValues)) return Route::kOther;
  return static_cast<Route>(found - std::begin(kRouteValues));
}

std::string Hex(uint64_t value) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

}  // namespace

MetricsFeed::MetricsFeed(const std::string& model_name, size_t groups)
    : metrics_({.model_name = model_name, .groups = GroupNames(groups)}) {
  metrics_.process.SetPhase(StartupPhase::kStarting);
}

void MetricsFeed::OnHttpEnd(const RequestEnd& end) const {
  const int status = end.status == 0 ? 499 : end.status;  // it left before it had an answer
  metrics_.CountHttp(RouteOf(end.path), ToMethod(end.method), status, end.seconds);
}

void MetricsFeed::OnFirstGroup(const GroupInfo& group, const Capacity& capacity,
                               const std::string& dtype) {
  metrics_.SetModelInfo(Hex(group.model_digest), dtype);
  metrics_.SetCacheConfig(group.block_tokens, capacity.total_blocks);
  metrics_.process.SetPhase(StartupPhase::kReady);
  metrics_.process.startup_progress().Set(1);
}

void MetricsFeed::OnEpochEnd(size_t group, std::string_view reason) const {
  const auto* found = std::find(std::begin(kEpochEndValues), std::end(kEpochEndValues), reason);
  const auto label = found == std::end(kEpochEndValues)
                         ? EpochEndReason::kOther
                         : static_cast<EpochEndReason>(found - std::begin(kEpochEndValues));
  metrics_.epoch_ends(GroupIndex{static_cast<int32_t>(group)}, label).Add();
}

std::string MetricsFeed::Text(const Groups& groups, int grpc_streams) const {
  int64_t queued = 0, running = 0, unfreed = 0;
  Duration oldest{};
  for (size_t i = 0; i < groups.size(); ++i) {
    ReadGroup(GroupIndex{static_cast<int32_t>(i)}, *groups[i]);
    queued += groups[i]->tracker().queued();
    running += groups[i]->tracker().running();
    unfreed += groups[i]->tracker().unfreed();
    oldest = std::max(oldest, groups[i]->tracker().oldest_unfreed());
  }
  metrics_.queue_depth(RequestClass::kDefault).Set(static_cast<double>(queued));
  metrics_.inflight_requests(Phase::kQueued).Set(static_cast<double>(queued));
  metrics_.inflight_requests(Phase::kDecode).Set(static_cast<double>(running));
  metrics_.finished_unacked().Set(static_cast<double>(unfreed));
  metrics_.finished_unacked_age().Set(std::chrono::duration<double>(oldest).count());
  metrics_.open_streams(Transport::kGrpc).Set(grpc_streams);
  return metrics_.Serialize();
}

void MetricsFeed::ReadGroup(GroupIndex index, const GrpcEngineClient& group) const {
  const Capacity now = group.capacity();
  const auto bytes = [&](int64_t blocks, int64_t slots) {
    return static_cast<double>(blocks * now.bytes_per_block + slots * now.bytes_per_slot);
  };
  const int64_t used_slots = now.total_slots - now.free_slots;
  metrics_.group_up(index).Set(group.group() != nullptr ? 1 : 0);
  metrics_.group_cache_bytes(index, GroupCacheKind::kReserved)
      .Set(bytes(now.reserved_blocks, used_slots));
  metrics_.group_cache_bytes(index, GroupCacheKind::kFree)
      .Set(bytes(now.free_blocks, now.free_slots));
  metrics_.group_state_slots(index, SlotState::kUsed).Set(static_cast<double>(used_slots));
  metrics_.group_state_slots(index, SlotState::kFree).Set(static_cast<double>(now.free_slots));
  metrics_.group_sequences(index, SequenceState::kRunning).Set(static_cast<double>(now.running));
  metrics_.group_sequences(index, SequenceState::kWaiting).Set(static_cast<double>(now.waiting));
}

}  // namespace levin
