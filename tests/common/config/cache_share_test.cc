// The length that is offered unasked, on the figures of the released model.
#include "common/config/cache_share.h"

#include <gtest/gtest.h>

#include "tests/common/config/m1_config.h"

namespace levin {
namespace {

ModelConfig M1() { return *ParseModelConfig(boost::json::serialize(testing::M1Config())); }

TEST(AutomaticLength, IsWhatHalfOfTheCacheHoldsForOne) {
  const CacheGeometry geometry = MakeCacheGeometry(M1(), 8, 2);
  // A state of 35 MiB and blocks of 320 KiB on each of eight ranks.
  const int64_t half = (35 << 20) + 1000 * (320 << 10);
  EXPECT_EQ(AutomaticLength(M1(), geometry, 2 * half), 64'000);
  EXPECT_EQ(AutomaticLength(M1(), geometry, 2 * half - 2), 63'936);
  EXPECT_EQ(AutomaticLength(M1(), geometry, 0), 64) << "one block at least";
  EXPECT_EQ(AutomaticLength(M1(), geometry, int64_t{1} << 50), 1'000'000) << "the window";
}

TEST(ShareCache, WhatWasAskedIsKeptAndWhatWasNotFitsIntoTheSplit) {
  const CacheGeometry geometry = MakeCacheGeometry(M1(), 8, 2);
  const int64_t total = int64_t{8} * 1'000'000'000;
  const auto unasked = ShareCache(M1(), geometry, total, 8, 256, 0);
  ASSERT_TRUE(unasked);
  EXPECT_EQ(unasked->max_model_len, AutomaticLength(M1(), geometry, 1'000'000'000));
  EXPECT_LE(unasked->max_model_len, unasked->split.tokens_max);
  const auto asked = ShareCache(M1(), geometry, total, 8, 256, 5'000'000);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->max_model_len, 5'000'000);
  EXPECT_LT(asked->split.tokens_max, 5'000'000);
  EXPECT_EQ(ShareCache(M1(), geometry, total, 8, 256, 1 << 30)->max_model_len, 10'240'000);
  // Half of it holds not even a state: the split says what is left.
  const auto little = ShareCache(M1(), geometry, int64_t{8} * (36 << 20), 8, 256, 0);
  ASSERT_TRUE(little);
  EXPECT_EQ(little->max_model_len, 64);
  EXPECT_EQ(little->split.slots, 1);
  EXPECT_FALSE(ShareCache(M1(), geometry, 1000, 8, 256, 0));
}

}  // namespace
}  // namespace levin
