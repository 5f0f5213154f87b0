#include "worker/group/leader_board.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/fake_clock.h"

namespace levin {
namespace {

class LeaderBoardTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  std::vector<Status> losses_;
  LeaderBoard board_{clock_, [this](const Status& why) { losses_.push_back(why); }};
};

TEST_F(LeaderBoardTest, HandsOutWhatCame) {
  board_.OnWelcome({.epoch = 5, .group_id = "g", .shared_memory_name = "/s"});
  board_.OnPool({.slots = 2, .blocks = 3});
  board_.OnPlan("one");
  board_.OnPlan("two");
  EXPECT_EQ(board_.AwaitWelcome(Duration{})->epoch, 5u);
  EXPECT_EQ(board_.AwaitPool(Duration{})->blocks, 3);
  EXPECT_EQ(**board_.AwaitPlan(), "one");
  EXPECT_EQ(**board_.AwaitPlan(), "two");
}

TEST_F(LeaderBoardTest, WaitsForAWelcomeNoLongerThanItWasTold) {
  EXPECT_EQ(board_.AwaitWelcome(Duration{}).error().code(), Code::kDeadlineExceeded);
}

TEST_F(LeaderBoardTest, AnOrderedShutdownComesBehindThePlansBeforeIt) {
  board_.OnPlan("last");
  board_.OnShutdown();
  board_.OnBroken(Unavailable("the stream ends behind it"));
  EXPECT_EQ(**board_.AwaitPlan(), "last");
  const auto end = board_.AwaitPlan();
  ASSERT_TRUE(end);
  EXPECT_FALSE(*end);
  EXPECT_TRUE(losses_.empty());
}

TEST_F(LeaderBoardTest, AShutdownDuringTheStartUpIsNoLoss) {
  board_.OnShutdown();
  EXPECT_EQ(board_.AwaitPool(std::chrono::minutes(1)).error().code(), Code::kCancelled);
}

TEST_F(LeaderBoardTest, ABreakEndsTheWaitAndIsSaidOnce) {
  std::thread engine([this] { EXPECT_EQ(board_.AwaitPlan().error().message(), "broke"); });
  board_.OnBroken(Unavailable("broke"));
  board_.OnBroken(Unavailable("again"));
  engine.join();
  ASSERT_EQ(losses_.size(), 1u);
  EXPECT_EQ(losses_[0].message(), "broke");
}

TEST_F(LeaderBoardTest, ASilentLeaderIsLostAfterFifteenSeconds) {
  board_.OnWelcome({});
  for (int second = 1; second <= 15; ++second) {
    clock_.Advance(std::chrono::seconds(1));
    board_.Tick();
    EXPECT_EQ(board_.heard(), second <= 3) << second;
  }
  EXPECT_TRUE(losses_.empty());
  clock_.Advance(std::chrono::seconds(1));
  board_.Tick();
  EXPECT_EQ(losses_.size(), 1u);
}

TEST_F(LeaderBoardTest, BeforeTheWelcomeSilenceIsNoLoss) {
  for (int second = 0; second < 60; ++second) {
    clock_.Advance(std::chrono::seconds(1));
    board_.Tick();
  }
  EXPECT_TRUE(losses_.empty());
}

TEST_F(LeaderBoardTest, AStallOfOurOwnDoesNotCountAgainstTheLeader) {
  board_.OnWelcome({});
  clock_.Advance(std::chrono::minutes(5));
  board_.Tick();
  EXPECT_TRUE(losses_.empty());
}

TEST_F(LeaderBoardTest, PlansWithoutEndAreABreak) {
  for (int i = 0; i < 20; ++i) board_.OnPlan("plan");
  EXPECT_EQ(losses_.size(), 1u);
}

}  // namespace
}  // namespace levin
