#include "worker/cache/hybrid_cache.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace levin {
namespace {

TEST(IdPoolTest, LendsEveryIdOnceAndRefusesWhatItDoesNotHave) {
  IdPool pool(5);
  std::optional<IdLease> three = pool.Acquire(3);
  ASSERT_TRUE(three);
  EXPECT_FALSE(pool.Acquire(3));
  std::optional<IdLease> two = pool.Acquire(2);
  ASSERT_TRUE(two);
  std::set<int32_t> ids(three->ids().begin(), three->ids().end());
  ids.insert(two->ids().begin(), two->ids().end());
  EXPECT_EQ(ids, (std::set<int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(pool.free(), 0);
}

TEST(IdPoolTest, TakesALeaseBackWhenItDies) {
  IdPool pool(2);
  { const auto lease = pool.Acquire(2); }
  EXPECT_EQ(pool.free(), 2);
}

TEST(IdPoolTest, AMovedLeaseGivesBackOnce) {
  IdPool pool(4);
  IdLease a = *pool.Acquire(2);
  IdLease b = std::move(a);
  EXPECT_TRUE(a.ids().empty());
  a.Release();
  EXPECT_EQ(pool.free(), 2);
  b = *pool.Acquire(1);  // what b held goes back
  EXPECT_EQ(pool.free(), 3);
  b.Release();
  b.Release();
  EXPECT_EQ(pool.free(), 4);
}

TEST(IdPoolTest, LendsTheIdReturnedLastFirst) {
  IdPool pool(8);
  IdLease a = *pool.Acquire(2), b = *pool.Acquire(2);
  const std::vector<int32_t> ids(a.ids().begin(), a.ids().end());
  a.Release();
  const IdLease again = *pool.Acquire(2);
  EXPECT_EQ(std::vector<int32_t>(again.ids().begin(), again.ids().end()), ids);
}

TEST(HybridCacheTest, AnAdmissionThatFailsForOneResourceLeavesTheOtherUnchanged) {
  HybridCache cache(1, 10);
  std::optional<SequenceCache> held = cache.Acquire(4);
  ASSERT_TRUE(held);
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(cache.Acquire(1));  // no slot
  EXPECT_EQ(cache.blocks().free(), 6);
  held.reset();
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(cache.Acquire(11));  // no blocks
  EXPECT_EQ(cache.slots().free(), 1);
  EXPECT_EQ(cache.blocks().free(), 10);
}

TEST(HybridCacheTest, RandomLifetimesNeverShareAnIdAndAllComesBack) {
  constexpr int64_t kSlots = 7, kBlocks = 40;
  HybridCache cache(kSlots, kBlocks);
  std::vector<SequenceCache> live;
  std::mt19937_64 random(3);
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 2 == 0 && !live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      live.pop_back();
    } else if (auto got = cache.Acquire(static_cast<int64_t>(random() % 12))) {
      live.push_back(*std::move(got));
    }
    std::set<int32_t> slots, blocks;
    size_t block_count = 0;
    for (const SequenceCache& held : live) {
      slots.insert(held.slot());
      blocks.insert(held.blocks().begin(), held.blocks().end());
      block_count += held.blocks().size();
    }
    ASSERT_EQ(slots.size(), live.size());
    ASSERT_EQ(blocks.size(), block_count);
    ASSERT_EQ(cache.slots().free() + static_cast<int64_t>(slots.size()), kSlots);
    ASSERT_EQ(cache.blocks().free() + static_cast<int64_t>(block_count), kBlocks);
  }
  live.clear();
  EXPECT_EQ(cache.slots().free(), kSlots);
  EXPECT_EQ(cache.blocks().free(), kBlocks);
}

}  // namespace
}  // namespace levin
