#include "router/dispatch/finished_level.h"

#include <gtest/gtest.h>

namespace levin {
namespace {

using std::chrono::milliseconds;

class FinishedLevelTest : public ::testing::Test {
 protected:
  void Submit(uint64_t last) {
    while (level_.watermark() < last) level_.Submitted(level_.watermark() + 1);
  }
  static TimePoint At(int64_t ms) { return TimePoint(milliseconds(ms)); }

  FinishedLevel level_{milliseconds(10), milliseconds(1000)};
};

TEST_F(FinishedLevelTest, SaysNothingWhileNothingHasEnded) {
  Submit(3);
  EXPECT_FALSE(level_.Due());
  EXPECT_FALSE(level_.Take(At(5000)));
}

TEST_F(FinishedLevelTest, NamesTheWatermarkAndThoseThatStillLive) {
  Submit(4);
  level_.Ended(2, At(0));
  EXPECT_EQ(level_.Take(At(0)), (FinishedSet{4, {1, 3, 4}}));
  EXPECT_EQ(level_.unfreed(), 1u);
}

TEST_F(FinishedLevelTest, FollowsAChangeAfterThePaceAndNotBefore) {
  Submit(2);
  level_.Ended(1, At(0));
  ASSERT_TRUE(level_.Take(At(100)));
  level_.Ended(2, At(0));
  EXPECT_FALSE(level_.Take(At(109)));
  EXPECT_EQ(level_.Due(), At(110));
  EXPECT_EQ(level_.Take(At(110)), (FinishedSet{2, {}}));
}

TEST_F(FinishedLevelTest, RepeatsUntilTheAckCoversIt) {
  Submit(2);
  level_.Ended(1, At(0));
  ASSERT_TRUE(level_.Take(At(0)));
  EXPECT_FALSE(level_.Take(At(999)));
  EXPECT_EQ(level_.Take(At(1000)), (FinishedSet{2, {2}}));
  EXPECT_TRUE(level_.Freed(2, std::vector<uint64_t>{2}));
  EXPECT_EQ(level_.unfreed(), 0u);
  EXPECT_FALSE(level_.Due());
}

TEST_F(FinishedLevelTest, AnAckThatStillListsAnEndedOneDoesNotCoverIt) {
  Submit(3);
  level_.Ended(1, At(0));
  level_.Ended(3, At(0));
  EXPECT_FALSE(level_.Freed(2, std::vector<uint64_t>{1, 2}));
  EXPECT_TRUE(level_.Freed(2, std::vector<uint64_t>{2}));
  EXPECT_EQ(level_.unfreed(), 1u);                          // 3 lies above the watermark
  EXPECT_FALSE(level_.Freed(2, std::vector<uint64_t>{2}));  // again: nothing new
  EXPECT_TRUE(level_.Freed(3, {}));
  EXPECT_EQ(level_.unfreed(), 0u);
}

TEST_F(FinishedLevelTest, KnowsWhenTheFirstOfTheUnfreedEnded) {
  Submit(3);
  EXPECT_FALSE(level_.oldest_unfreed());
  level_.Ended(3, At(10));
  level_.Ended(1, At(20));
  EXPECT_EQ(level_.oldest_unfreed(), At(10));
  EXPECT_TRUE(level_.Freed(3, std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(level_.oldest_unfreed(), At(20));
}

TEST_F(FinishedLevelTest, IsDueAtOnceOnANewStream) {
  Submit(2);
  level_.Ended(1, At(0));
  ASSERT_TRUE(level_.Take(At(0)));
  level_.Reopened();
  EXPECT_EQ(level_.Take(At(1)), (FinishedSet{2, {2}}));
}

}  // namespace
}  // namespace levin
