#include "worker/process/leader_gauges.h"

#include <gtest/gtest.h>

namespace levin {
namespace {

class LeaderGaugesTest : public ::testing::Test {
 protected:
  LeaderGaugesTest() {
    view_.ranks = 2;
    view_.capacity = {.total_blocks = 10,
                      .free_blocks = 4,
                      .reserved_blocks = 6,
                      .total_slots = 5,
                      .free_slots = 3,
                      .bytes_per_block = 200,
                      .bytes_per_slot = 2000,
                      .running = 2,
                      .waiting = 1};
    view_.blocks_used = 4;
    view_.steps_done = 10;
    view_.others = {{.up = true, .step_done = 9, .silent = std::chrono::milliseconds(500)}};
  }
  double Cache(CacheKind kind) { return families().cache_bytes(kind).value(); }
  const LeaderFamilies& families() { return *metrics_.leader; }

  WorkerMetrics metrics_{{.model_name = "m", .group = "g", .rank = 0, .world_size = 2}};
  LeaderView view_;
};

TEST_F(LeaderGaugesTest, KindsOfCacheAddUpToThePoolOfOneRank) {
  WriteGauges(view_, families());
  EXPECT_EQ(Cache(CacheKind::kState), 2 * 1000);
  EXPECT_EQ(Cache(CacheKind::kKv), 4 * 100);
  EXPECT_EQ(Cache(CacheKind::kReservedUnused), 2 * 100);
  EXPECT_EQ(Cache(CacheKind::kState) + Cache(CacheKind::kKv) + Cache(CacheKind::kReservedUnused) +
                Cache(CacheKind::kFree),
            5 * 1000 + 10 * 100);
}

TEST_F(LeaderGaugesTest, IdleIsZeroAlsoWhenTheMeterHasNotSeenTheEnd) {
  view_.capacity.free_slots = 5;
  view_.capacity.free_blocks = 10;
  view_.capacity.reserved_blocks = view_.capacity.running = view_.capacity.waiting = 0;
  WriteGauges(view_, families());
  EXPECT_EQ(Cache(CacheKind::kState), 0);
  EXPECT_EQ(Cache(CacheKind::kKv), 0);
  EXPECT_EQ(Cache(CacheKind::kReservedUnused), 0);
  EXPECT_EQ(families().state_slots(SlotState::kUsed).value(), 0);
}

TEST_F(LeaderGaugesTest, RanksShowTheirLagAndTheirSilence) {
  WriteGauges(view_, families());
  EXPECT_EQ(families().rank_up(PeerRank{1}).value(), 1);
  EXPECT_EQ(families().rank_step_lag(PeerRank{1}).value(), 1);
  EXPECT_EQ(families().heartbeat_age(PeerRank{1}).value(), 0.5);
  EXPECT_EQ(families().sequences(SequenceState::kRunning).value(), 2);
}

}  // namespace
}  // namespace levin
