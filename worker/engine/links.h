// The engine's doors: toward routers, toward the other ranks, and a follower's toward its leader.
// Implemented over gRPC in worker/rpc and by plain queues in tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/inference/generation.h"
#include "worker/engine/router_messages.h"

namespace levin {

// Called on the engine thread; must not block. Events of one step come in one call, per router and
// ordinal in order. Events for a router that is gone may still come and are to be dropped.
class Outbox {
 public:
  virtual ~Outbox() = default;
  virtual void Deliver(std::vector<RouterEvent> events) = 0;
  virtual void OnCapacity(const Capacity& capacity) = 0;  // after each change
};

// The leader's view of ranks 1 .. N-1. Engine thread. An error ends the epoch.
class RankLink {
 public:
  virtual ~RankLink() = default;
  virtual Status SendPlan(const std::string& encoded) = 0;
  // Waits until every rank reported this step; [i] is rank i + 1. The wait is bounded.
  virtual Result<std::vector<uint64_t>> AwaitDigests(uint64_t step) = 0;
};

// A follower's view of its leader. Engine thread.
class LeaderLink {
 public:
  virtual ~LeaderLink() = default;
  // The next plan's bytes; nullopt: the leader shuts the group down in order.
  virtual Result<std::optional<std::string>> ReceivePlan() = 0;
  virtual Status SendDigest(uint64_t step, uint64_t digest) = 0;
};

}  // namespace levin
