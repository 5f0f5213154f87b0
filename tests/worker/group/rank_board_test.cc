#include "worker/group/rank_board.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/fake_clock.h"

namespace levin {
namespace {

RankHello Of(int rank) {
  return {.rank = rank,
          .world_size = 3,
          .build_id = "1",
          .protocol = 1,
          .config_hash = 7,
          .host = "box",
          .device = "cpu",
          .pid = 42};
}

class RankBoardTest : public ::testing::Test {
 protected:
  void JoinAll() {
    ASSERT_TRUE(board_.Join(Of(1)).ok());
    ASSERT_TRUE(board_.Join(Of(2)).ok());
    ASSERT_TRUE(board_.Start().ok());
  }
  // A second passes; the ranks given were heard in it.
  void Second(std::initializer_list<int> heard) {
    clock_.Advance(std::chrono::seconds(1));
    for (const int rank : heard) board_.OnHeartbeat(rank);
    board_.Tick();
  }

  FakeClock clock_;
  std::vector<RankLoss> losses_;
  RankBoard board_{Of(0), clock_, [this](const RankLoss& loss) { losses_.push_back(loss); }};
};

TEST_F(RankBoardTest, TheStartUpWalksThroughItsPhases) {
  JoinAll();
  EXPECT_TRUE(board_.AwaitJoined(Duration{}).ok());
  EXPECT_EQ(board_.AwaitLoaded(Duration{}).error().code(), Code::kDeadlineExceeded);
  board_.OnLoaded(2, {.free_bytes = 5, .weights_digest = 22});
  board_.OnLoaded(1, {.free_bytes = 6, .weights_digest = 11});
  EXPECT_EQ(board_.AwaitLoaded(Duration{})->at(1).weights_digest, 22u);
  board_.OnReady(1, 100);
  board_.OnReady(2, 300);
  EXPECT_EQ(*board_.AwaitReady(Duration{}), 300);
}

TEST_F(RankBoardTest, AStalledStartNamesWhoIsMissing) {
  ASSERT_TRUE(board_.Join(Of(1)).ok());
  const Status status = board_.AwaitJoined(Duration{});
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
  EXPECT_NE(status.message().find("rank 2"), std::string::npos) << status.message();
}

TEST_F(RankBoardTest, ASecondProcessOfOneRankIsRefusedAndHarmsNobody) {
  JoinAll();
  const Status status = board_.Join(Of(1));
  EXPECT_EQ(status.code(), Code::kAlreadyExists);
  EXPECT_NE(status.message().find("rank 1"), std::string::npos);
  EXPECT_TRUE(losses_.empty());
}

TEST_F(RankBoardTest, ARankThatDoesNotFitIsRefusedAndHarmsNobody) {
  RankHello hello = Of(1);
  hello.config_hash = 8;
  EXPECT_EQ(board_.Join(hello).code(), Code::kFailedPrecondition);
  EXPECT_TRUE(board_.Join(Of(1)).ok());
}

TEST_F(RankBoardTest, BeforeTheStartARankMayGoAndComeAgain) {
  ASSERT_TRUE(board_.Join(Of(1)).ok());
  board_.OnGone(1, Unavailable("gone"));
  EXPECT_TRUE(losses_.empty());
  JoinAll();
}

TEST_F(RankBoardTest, ARankThatLeftBeforeTheStartIsNoticedThere) {
  ASSERT_TRUE(board_.Join(Of(1)).ok());
  ASSERT_TRUE(board_.Join(Of(2)).ok());
  board_.OnGone(2, Unavailable("gone"));
  EXPECT_EQ(board_.Start().code(), Code::kUnavailable);
}

TEST_F(RankBoardTest, DigestsComeInRankOrder) {
  JoinAll();
  board_.OnStepDone(2, 1, 0xb);
  board_.OnStepDone(1, 1, 0xa);
  board_.OnStepDone(1, 2, 0xc);
  EXPECT_EQ(*board_.AwaitDigests(1, Duration{}), (std::vector<uint64_t>{0xa, 0xb}));
  board_.OnStepDone(2, 2, 0xd);
  EXPECT_EQ(*board_.AwaitDigests(2, Duration{}), (std::vector<uint64_t>{0xc, 0xd}));
}

TEST_F(RankBoardTest, ADigestThatDoesNotComeIsNamedAfterTheLimit) {
  JoinAll();
  board_.OnStepDone(1, 1, 0xa);
  const auto digests = board_.AwaitDigests(1, Duration{});
  ASSERT_FALSE(digests);
  EXPECT_NE(digests.error().message().find("rank 2 did not report step 1"), std::string::npos);
}

TEST_F(RankBoardTest, AStepOutOfOrderIsAnError) {
  JoinAll();
  board_.OnStepDone(1, 2, 0xa);
  EXPECT_EQ(board_.AwaitDigests(1, Duration{}).error().code(), Code::kFailedPrecondition);
}

TEST_F(RankBoardTest, ALossEndsEveryWaitAndIsSaidOnce) {
  JoinAll();
  std::thread engine([this] {
    const auto digests = board_.AwaitDigests(1, std::chrono::minutes(1));
    ASSERT_FALSE(digests);
    EXPECT_EQ(digests.error().message(), "rank 2 is gone");
  });
  board_.OnGone(2, Unavailable("rank 2 is gone"));
  board_.OnGone(1, Unavailable("rank 1 is gone"));
  engine.join();
  ASSERT_EQ(losses_.size(), 1u);
  EXPECT_EQ(losses_[0].rank, 2);
  EXPECT_EQ(losses_[0].reason, "rank_lost");
  EXPECT_EQ(board_.AwaitReady(std::chrono::minutes(1)).error().message(), "rank 2 is gone");
}

TEST_F(RankBoardTest, SilenceIsSuspectAfterThreeSecondsAndLostAfterFifteen) {
  JoinAll();
  for (int second = 1; second <= 14; ++second) {
    Second({1});
    EXPECT_EQ(board_.all_heard(), second <= 3) << second;
  }
  EXPECT_TRUE(losses_.empty());
  EXPECT_TRUE(board_.views()[0].up);
  EXPECT_FALSE(board_.views()[1].up);
  Second({1});
  Second({1});
  ASSERT_EQ(losses_.size(), 1u);
  EXPECT_EQ(losses_[0].rank, 2);
  EXPECT_NE(losses_[0].status.message().find("rank 2 was silent"), std::string::npos);
}

TEST_F(RankBoardTest, ARankThatComesBackInTimeIsForgiven) {
  JoinAll();
  for (int second = 0; second < 14; ++second) Second({1});
  Second({1, 2});
  EXPECT_TRUE(board_.all_heard());
  for (int second = 0; second < 14; ++second) Second({1});
  EXPECT_TRUE(losses_.empty());
}

TEST_F(RankBoardTest, AStallOfTheLeaderItselfDoesNotCountAgainstTheRanks) {
  JoinAll();
  Second({1, 2});
  clock_.Advance(std::chrono::minutes(5));
  board_.Tick();
  EXPECT_TRUE(losses_.empty());
}

TEST_F(RankBoardTest, AnOrderedEndLosesNobody) {
  JoinAll();
  board_.Stop();
  board_.OnGone(1, Unavailable("gone"));
  EXPECT_TRUE(losses_.empty());
  EXPECT_FALSE(board_.loss());
}

}  // namespace
}  // namespace levin
