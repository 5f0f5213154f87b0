// B01: ten thousand random finish/admit interleavings, with everything checked after each step.
#include <map>
#include <random>
#include <set>

#include "tests/worker/schedule/scheduler_fixture.h"

namespace levin {
namespace {

class InterleavingTest : public SchedulerFixture {
 protected:
  // Plays a rank's table: who owns which slot and block.
  void Follow(const BatchPlan& plan) {
    for (SequenceId id : plan.finished) ASSERT_EQ(held_.erase(id), 1u);
    for (const NewSequence& started : plan.started) {
      std::vector<int32_t> blocks(plan.blocks.begin() + started.blocks.first,
                                  plan.blocks.begin() + started.blocks.end());
      ASSERT_TRUE(held_.emplace(started.sequence, std::pair(started.state_slot, blocks)).second);
    }
    std::set<int32_t> slots, blocks;
    size_t block_count = 0;
    for (const auto& [id, memory] : held_) {
      slots.insert(memory.first);
      blocks.insert(memory.second.begin(), memory.second.end());
      block_count += memory.second.size();
    }
    ASSERT_EQ(slots.size(), held_.size()) << "a slot with two owners";
    ASSERT_EQ(blocks.size(), block_count) << "a block with two owners";
    const Capacity capacity = scheduler_->capacity();
    ASSERT_EQ(capacity.free_slots + static_cast<int64_t>(slots.size()), capacity.total_slots);
    ASSERT_EQ(capacity.free_blocks + static_cast<int64_t>(block_count), capacity.total_blocks);
  }

  std::map<SequenceId, std::pair<int32_t, std::vector<int32_t>>> held_;
};

TEST_F(InterleavingTest, TenThousandEndsAndAdmissionsKeepFreePlusUsedEqualToTheWhole) {
  constexpr uint64_t kSeed = 20261130;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  SchedulerOptions options = Small();
  options.admission_skips = 3;
  Start(options);
  uint64_t added = 0;
  for (int step = 0; step < 10'000; ++step) {
    while (scheduler_->capacity().waiting < 6)
      ASSERT_TRUE(Add(++added, Ask(1 + static_cast<int64_t>(random() % 300),
                                   static_cast<int32_t>(random() % 40)))
                      .ok());
    if (random() % 8 == 0) Cancel(added - random() % 10);
    const std::optional<BatchPlan> plan = Step([&](SequenceId) {
      return RowSample{.token = {.token = random() % 4 == 0 ? kStopId : kDraw}};
    });
    ASSERT_TRUE(plan);
    Follow(*plan);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(added, 5000u);
  while (std::optional<BatchPlan> plan = Step()) Follow(*plan);
  EXPECT_TRUE(held_.empty());
  for (uint64_t ordinal : {uint64_t{1}, added / 2, added}) {
    EXPECT_EQ(All<Ended>(ordinal).size(), 1u);
    EXPECT_EQ(All<Freed>(ordinal).size(), 1u);
  }
}

}  // namespace
}  // namespace levin
