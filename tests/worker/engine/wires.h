// Queues in place of the Join streams: leader and followers on threads of one process.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/mailbox.h"
#include "worker/engine/links.h"

namespace levin::testing {

inline constexpr auto kPatience = std::chrono::seconds(60);

struct Report {
  uint64_t step = 0, digest = 0;
};

struct Wire {
  Mailbox<std::string> plans{4};
  Mailbox<Report> reports{4};
};

class WireToFollowers final : public RankLink {
 public:
  explicit WireToFollowers(std::vector<std::unique_ptr<Wire>>& wires) : wires_(wires) {}
  Status SendPlan(const std::string& encoded) override {
    for (auto& wire : wires_)
      if (!wire->plans.TryPush(encoded)) return Unavailable("a rank does not take plans");
    return Status::Ok();
  }
  Result<std::vector<uint64_t>> AwaitDigests(uint64_t step) override {
    std::vector<uint64_t> digests;
    for (auto& wire : wires_) {
      const auto report = wire->reports.PopUntil(std::chrono::steady_clock::now() + kPatience);
      if (!report || report->step != step) return Error(Unavailable("a rank is lost"));
      digests.push_back(report->digest);
    }
    return digests;
  }

 private:
  std::vector<std::unique_ptr<Wire>>& wires_;
};

class WireToLeader final : public LeaderLink {
 public:
  explicit WireToLeader(Wire& wire) : wire_(wire) {}
  Result<std::optional<std::string>> ReceivePlan() override {
    std::optional<std::string> plan =
        wire_.plans.PopUntil(std::chrono::steady_clock::now() + kPatience);
    if (!plan && !wire_.plans.closed()) return Error(Unavailable("no plan"));
    return plan;
  }
  Status SendDigest(uint64_t step, uint64_t digest) override {
    return wire_.reports.TryPush({step, digest}) ? Status::Ok() : Unavailable("leader is gone");
  }

 private:
  Wire& wire_;
};

}  // namespace levin::testing
