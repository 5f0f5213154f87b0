// A whole group in one thread: ranks with scripted models, whose freed memory is poisoned at once,
// and a link that plays all followers.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "tests/support/scripted_model.h"
#include "worker/engine/links.h"
#include "worker/engine/rank_executor.h"
#include "worker/plan/plan_codec.h"
#include "worker/schedule/scheduler.h"

namespace levin::testing {

inline PlanLimits LimitsOf(const SchedulerOptions& options) {
  return {.epoch = options.epoch,
          .slots = options.slots,
          .blocks = options.blocks,
          .block_tokens = options.block_tokens,
          .rows_max = options.rows_max(),
          .tokens_max = options.step_tokens_max(),
          .vocab_size = options.vocab_size};
}

class LocalRank final {
 public:
  explicit LocalRank(const SchedulerOptions& options)
      : model(options.slots, options.blocks, options.block_tokens, options.vocab_size),
        executor(LimitsOf(options), model, {}) {}

  // Before the plan is executed: what it frees holds garbage from now on.
  void PoisonWhatIsFreed(const BatchPlan& plan) {
    for (SequenceId sequence : plan.finished) {
      const TableEntry& entry = executor.table().at(sequence);
      model.PoisonSlot(entry.slot);
      for (int32_t block : entry.blocks) model.PoisonBlock(block);
    }
  }

  ScriptedModel model;
  RankExecutor executor;
};

class LocalGroup final : public RankLink {
 public:
  LocalGroup(const SchedulerOptions& options, int ranks) {
    for (int i = 0; i < ranks; ++i) ranks_.push_back(std::make_unique<LocalRank>(options));
  }

  Status SendPlan(const std::string& encoded) override {
    const Result<BatchPlan> plan = DecodePlan(encoded);
    CHECK(plan.has_value());
    plans.push_back(*plan);
    if (plans.size() > kPlansKept) plans.erase(plans.begin());
    encoded_ = encoded;
    for (const auto& rank : ranks_) rank->PoisonWhatIsFreed(*plan);
    return Status::Ok();
  }

  Result<std::vector<uint64_t>> AwaitDigests(uint64_t step) override {
    std::vector<uint64_t> digests;
    for (size_t i = 1; i < ranks_.size(); ++i) {
      ASSIGN_OR_RETURN(const StepResult result, ranks_[i]->executor.Execute(encoded_));
      CHECK_EQ(result.step, step);
      digests.push_back(result.digest);
    }
    return digests;
  }

  LocalRank& rank(size_t i) { return *ranks_[i]; }
  size_t size() const { return ranks_.size(); }

  static constexpr size_t kPlansKept = 8;
  std::vector<BatchPlan> plans;  // the last few

 private:
  std::vector<std::unique_ptr<LocalRank>> ranks_;
  std::string encoded_;
};

class RecordingOutbox final : public Outbox {
 public:
  void Deliver(std::vector<RouterEvent> more) override {
    for (RouterEvent& event : more) events.push_back(std::move(event));
  }
  void OnCapacity(const Capacity& now) override { capacity = now; }

  std::vector<RouterEvent> events;
  std::optional<Capacity> capacity;
};

}  // namespace levin::testing
