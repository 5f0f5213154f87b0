// Watches every plan of a simulation from outside: its own books of who holds which memory, and the
// rules that each plan must keep. Failures are GoogleTest failures.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "worker/plan/batch_plan.h"
#include "worker/schedule/scheduler.h"

namespace levin::testing {

class PlanAudit final {
 public:
  explicit PlanAudit(SchedulerOptions options) : options_(options) {}

  void Check(const BatchPlan& plan) {
    for (SequenceId sequence : plan.finished) EXPECT_EQ(held_.erase(sequence), 1u) << sequence;
    for (const NewSequence& started : plan.started) Start(plan, started);
    CheckOwners();
    CheckRows(plan);
  }

  // The sequence that runs the generation with this (unique) seed; 0: never started.
  SequenceId SequenceOf(uint64_t seed) const {
    const auto it = by_seed_.find(seed);
    return it == by_seed_.end() ? 0 : it->second;
  }
  bool Holds(SequenceId sequence) const { return held_.contains(sequence); }
  size_t held() const { return held_.size(); }

 private:
  struct Held {
    int32_t slot = 0;
    std::vector<int32_t> blocks;
    int64_t computed = 0;
  };

  void Start(const BatchPlan& plan, const NewSequence& started) {
    EXPECT_GT(started.sequence, highest_);
    highest_ = started.sequence;
    Held held{.slot = started.state_slot, .blocks = {}, .computed = 0};
    held.blocks.assign(plan.blocks.begin() + started.blocks.first,
                       plan.blocks.begin() + started.blocks.end());
    held_.emplace(started.sequence, std::move(held));
    by_seed_[started.sampling.seed] = started.sequence;
  }

  void CheckOwners() const {
    std::set<int32_t> slots, blocks;
    size_t count = 0;
    for (const auto& [sequence, held] : held_) {
      slots.insert(held.slot);
      blocks.insert(held.blocks.begin(), held.blocks.end());
      count += held.blocks.size();
    }
    EXPECT_EQ(slots.size(), held_.size()) << "a slot with two owners";
    EXPECT_EQ(blocks.size(), count) << "a block with two owners";
  }

  void CheckRows(const BatchPlan& plan) {
    std::set<SequenceId> seen;
    int64_t tokens = 0;
    for (const PlanRow& row : plan.rows) {
      EXPECT_TRUE(seen.insert(row.sequence).second) << "two rows of sequence " << row.sequence;
      ASSERT_TRUE(held_.contains(row.sequence));
      Held& held = held_.at(row.sequence);
      EXPECT_EQ(row.position, held.computed);
      EXPECT_EQ(row.fresh, held.computed == 0);
      const int64_t count = std::max(row.tokens.count, 1);
      held.computed += count;
      tokens += count;
      if (options_.chunk_tokens > 0) continue;
      if (!row.stepwise && row.draws == 0 && held.computed % options_.block_tokens != 0)
        odd_ends_.insert(row.sequence);  // allowed once: where a prompt of no new tokens ends
      else
        EXPECT_FALSE(odd_ends_.contains(row.sequence)) << "a chunk ended between two edges";
    }
    EXPECT_LE(tokens, options_.step_tokens_max());
    EXPECT_LE(static_cast<int64_t>(plan.rows.size()), options_.slots);
  }

  const SchedulerOptions options_;
  std::map<SequenceId, Held> held_;
  std::map<uint64_t, SequenceId> by_seed_;
  std::set<SequenceId> odd_ends_;
  SequenceId highest_ = 0;
};

}  // namespace levin::testing
