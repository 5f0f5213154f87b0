#include "common/config/cache_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/common/config/m1_config.h"
#include "tests/support/golden.h"

namespace levin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kKiB = 1024;
constexpr int64_t kMiB = 1024 * kKiB;
constexpr int64_t kGiB = 1024 * kMiB;

ModelConfig M1() { return *ParseModelConfig(boost::json::serialize(testing::M1Config())); }

TEST(CacheCost, OfTheReleasedModelIsThatOfTheTable) {
  EXPECT_EQ(MakeCacheGeometry(M1(), 1, 2).state_bytes_per_slot, 280 * kMiB);
  EXPECT_EQ(MakeCacheGeometry(M1(), 1, 2).kv_bytes_per_block, 2560 * kKiB);
  EXPECT_EQ(MakeCacheGeometry(M1(), 8, 2).state_bytes_per_slot, 35 * kMiB);
  EXPECT_EQ(MakeCacheGeometry(M1(), 8, 2).kv_bytes_per_block, 320 * kKiB);
  EXPECT_EQ(MakeCacheGeometry(M1(), 8, 4).kv_bytes_per_block, 640 * kKiB);
  EXPECT_EQ(MakeCacheGeometry(M1(), 8, 4).state_bytes_per_slot, 35 * kMiB);
  // KV heads are replicated from here on, states go on shrinking.
  EXPECT_EQ(MakeCacheGeometry(M1(), 16, 2).kv_bytes_per_block, 320 * kKiB);
  EXPECT_EQ(MakeCacheGeometry(M1(), 16, 2).state_bytes_per_slot, 35 * kMiB / 2);
}

TEST(CacheCost, OfARequestIsItsStateAndItsBlocks) {
  const CacheGeometry geometry = MakeCacheGeometry(M1(), 8, 2);
  EXPECT_EQ(BlocksFor(geometry, 0, 0), 0);
  EXPECT_EQ(BlocksFor(geometry, 1, 0), 1);
  EXPECT_EQ(BlocksFor(geometry, 60, 4), 1);
  EXPECT_EQ(BlocksFor(geometry, 60, 5), 2);
  EXPECT_EQ(BlocksFor(geometry, int64_t{1} << 62, 1), (int64_t{1} << 56) + 1);
  EXPECT_EQ(RequestBytes(geometry, 1 << 20, 0), 35 * kMiB + 5 * kGiB);
  EXPECT_EQ(RequestBytes(geometry, 128 << 10, 0), 35 * kMiB + 640 * kMiB);
}

TEST(SplitBudget, HoldsTheLongestSequenceBeforeMoreSlots) {
  const CacheGeometry geometry = MakeCacheGeometry(M1(), 8, 2);
  const Result<CacheSplit> split = SplitBudget(8 * 14 * kGiB, 8, geometry, 256, 2 << 20);
  ASSERT_TRUE(split) << split.error().message();
  EXPECT_GE(split->blocks, (2 << 20) / 64);
  EXPECT_EQ(split->tokens_max, 2 << 20);
  EXPECT_GT(split->slots, 1);
  EXPECT_LE(split->bytes_per_rank, 14 * kGiB);
  EXPECT_EQ(split->bytes_per_rank, split->slots * 35 * kMiB + split->blocks * 320 * kKiB);
}

TEST(SplitBudget, NeverExceedsTheBudgetAndIsNeverUseless) {
  const CacheGeometry geometry = MakeCacheGeometry(M1(), 8, 2);
  const int64_t least = 8 * (geometry.state_bytes_per_slot + geometry.kv_bytes_per_block);
  for (int64_t total = least; total < 64 * kGiB; total += total / 3) {
    for (int64_t seqs : {1, 16, 256}) {
      for (int64_t length : {1, 64, 4096, 1 << 20}) {
        const Result<CacheSplit> split = SplitBudget(total, 8, geometry, seqs, length);
        ASSERT_TRUE(split) << split.error().message();
        EXPECT_LE(split->bytes_per_rank, total / 8);
        EXPECT_GE(split->slots, 1);
        EXPECT_LE(split->slots, seqs);
        EXPECT_GE(split->blocks, split->slots) << "each sequence can have one block";
        EXPECT_LE(split->tokens_max, length);
      }
    }
  }
}

TEST(SplitBudget, GivesAllSequencesFullLengthWhereThereIsRoom) {
  const ModelConfig tiny = *LoadModelConfig(testing::GoldenDirs("network").front() / "tiny");
  const CacheGeometry geometry = MakeCacheGeometry(tiny, 2, 4);
  const Result<CacheSplit> split = SplitBudget(kGiB, 2, geometry, 16, 1000);
  ASSERT_TRUE(split);
  EXPECT_EQ(split->slots, 16);
  EXPECT_EQ(split->blocks, 16 * 16) << "and takes no more than they can use";
}

TEST(SplitBudget, TooSmallIsRefusedWithTheNumbers) {
  const CacheGeometry geometry = MakeCacheGeometry(M1(), 8, 2);
  const int64_t least = 35 * kMiB + 320 * kKiB;
  EXPECT_TRUE(SplitBudget(8 * least, 8, geometry, 4, 64));
  const Result<CacheSplit> split = SplitBudget(8 * least - 8, 8, geometry, 4, 64);
  ASSERT_FALSE(split);
  EXPECT_EQ(split.error().code(), Code::kResourceExhausted);
  EXPECT_THAT(split.error().message(),
              AllOf(HasSubstr(std::to_string(least)), HasSubstr(std::to_string(8 * least)),
                    HasSubstr(std::to_string(least - 1))));
  EXPECT_FALSE(SplitBudget(0, 8, geometry, 4, 64));
  EXPECT_FALSE(SplitBudget(-5, 8, geometry, 4, 64));
  EXPECT_FALSE(SplitBudget(kGiB, 8, geometry, 0, 64));
  EXPECT_FALSE(SplitBudget(kGiB, 8, geometry, 1, 0));
}

TEST(SplitBudget, WorksForNetworksOfOneKindOfLayer) {
  CacheGeometry states_only{.state_bytes_per_slot = kMiB, .kv_bytes_per_block = 0};
  const Result<CacheSplit> states = SplitBudget(10 * kMiB, 1, states_only, 256, 1 << 20);
  ASSERT_TRUE(states);
  EXPECT_EQ(states->slots, 10);
  EXPECT_EQ(states->blocks, 10 * (1 << 14));
  CacheGeometry blocks_only{.state_bytes_per_slot = 0, .kv_bytes_per_block = kMiB};
  const Result<CacheSplit> blocks = SplitBudget(10 * kMiB, 1, blocks_only, 4, 640);
  ASSERT_TRUE(blocks);
  EXPECT_EQ(blocks->slots, 1);
  EXPECT_EQ(blocks->blocks, 10);
}

}  // namespace
}  // namespace levin
