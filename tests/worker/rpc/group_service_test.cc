#include "worker/rpc/group_service.h"

#include <gtest/gtest.h>

#include <future>

#include "worker/rpc/group_client.h"
#include "worker/rpc/rpc_server.h"

namespace levin {
namespace {

constexpr Duration kSoon = std::chrono::seconds(10);

TimePoint Soon() { return std::chrono::steady_clock::now() + kSoon; }

RankHello Of(int rank, uint64_t config_hash = 7) {
  return {.rank = rank,
          .world_size = 3,
          .build_id = "1",
          .protocol = 1,
          .config_hash = config_hash,
          .host = "box",
          .device = "cpu",
          .pid = 42};
}

// A rank as its process would run it.
struct Rank {
  Rank(const std::string& address, const RankHello& hello) : board(clock, [](const Status&) {}) {
    auto joined = JoinGroup(address, hello, board, kSoon);
    EXPECT_TRUE(joined) << joined.error().message();
    client = *std::move(joined);
  }
  SystemClock clock;
  LeaderBoard board;
  std::unique_ptr<GroupClient> client;
};

class GroupServiceTest : public ::testing::Test {
 protected:
  GroupServiceTest() {
    auto server = StartRpcServer("127.0.0.1:0", service_->service());
    EXPECT_TRUE(server) << server.error().message();
    server_ = *std::move(server);
  }

  void JoinBoth() {
    one_ = std::make_unique<Rank>(server_->address(), Of(1));
    two_ = std::make_unique<Rank>(server_->address(), Of(2));
    ASSERT_TRUE(board_.AwaitJoined(kSoon).ok());
    ASSERT_TRUE(board_.Start().ok());
  }
  RankLoss Loss() {
    EXPECT_EQ(lost_.get_future().wait_for(kSoon), std::future_status::ready);
    return *board_.loss();
  }

  SystemClock clock_;
  std::promise<void> lost_;
  RankBoard board_{Of(0), clock_, [this](const RankLoss&) { lost_.set_value(); }};
  std::unique_ptr<GroupService> service_ = MakeGroupService(board_);
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<Rank> one_, two_;
};

TEST_F(GroupServiceTest, AGroupStartsRunsAStepAndShutsDownInOrder) {
  JoinBoth();
  ASSERT_TRUE(
      service_->SendWelcome({.epoch = 9, .group_id = "g", .shared_memory_name = "/levin-9"}).ok());
  for (Rank* rank : {one_.get(), two_.get()}) {
    EXPECT_EQ(rank->board.AwaitWelcome(kSoon)->shared_memory_name, "/levin-9");
    rank->client->SendProgress(1, 2);
    rank->client->SendLoaded({.free_bytes = 1, .weights_digest = 0xabc});
  }
  EXPECT_EQ(board_.AwaitLoaded(kSoon)->at(1).weights_digest, 0xabcu);
  ASSERT_TRUE(service_->SendPool({.slots = 3, .blocks = 4}).ok());
  for (Rank* rank : {one_.get(), two_.get()}) {
    EXPECT_EQ(rank->board.AwaitPool(kSoon)->slots, 3);
    rank->client->SendReady(250);
  }
  EXPECT_EQ(*board_.AwaitReady(kSoon), 250);
  const std::string plan(100'000, '\7');
  ASSERT_TRUE(service_->SendPlan(plan).ok());
  for (Rank* rank : {one_.get(), two_.get()}) {
    EXPECT_EQ(**rank->client->ReceivePlan(), plan);
    ASSERT_TRUE(rank->client->SendDigest(1, 0x5).ok());
  }
  EXPECT_EQ(*service_->AwaitDigests(1), (std::vector<uint64_t>{5, 5}));
  board_.Stop();
  std::thread leader([this] { service_->Shutdown("drain", Soon()); });
  for (Rank* rank : {one_.get(), two_.get()}) {
    EXPECT_FALSE(*rank->client->ReceivePlan());
    rank->client->Close(Soon());
    rank->client.reset();
  }
  leader.join();
  EXPECT_FALSE(board_.loss());
}

TEST_F(GroupServiceTest, AMismatchIsToldToTheRankAndHarmsNobody) {
  Rank wrong(server_->address(), Of(1, 8));
  const auto welcome = wrong.board.AwaitWelcome(kSoon);
  ASSERT_FALSE(welcome);
  EXPECT_EQ(welcome.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(welcome.error().message().find("hash 8, expected 7"), std::string::npos);
  RankHello other_size = Of(1);
  other_size.world_size = 2;
  Rank size(server_->address(), other_size);
  EXPECT_NE(
      size.board.AwaitWelcome(kSoon).error().message().find("world size is 2, the leader's is 3"),
      std::string::npos);
  JoinBoth();
}

TEST_F(GroupServiceTest, ASecondProcessOfARankIsRefusedByName) {
  JoinBoth();
  Rank twin(server_->address(), Of(1));
  const auto welcome = twin.board.AwaitWelcome(kSoon);
  ASSERT_FALSE(welcome);
  EXPECT_EQ(welcome.error().code(), Code::kAlreadyExists);
  ASSERT_TRUE(service_->SendWelcome({.epoch = 1, .group_id = "g", .shared_memory_name = {}}).ok());
  EXPECT_TRUE(one_->board.AwaitWelcome(kSoon));
  EXPECT_FALSE(board_.loss());
}

TEST_F(GroupServiceTest, ARankThatGoesIsNamedAndEndsTheWaits) {
  JoinBoth();
  two_.reset();
  const RankLoss loss = Loss();
  EXPECT_EQ(loss.rank, 2);
  EXPECT_EQ(loss.reason, "rank_lost");
  EXPECT_NE(loss.status.message().find("rank 2"), std::string::npos);
  EXPECT_FALSE(service_->AwaitDigests(1));
}

TEST_F(GroupServiceTest, AFaultSaysWhatTheRankSaid) {
  JoinBoth();
  one_->client->SendFault(12, "step", Internal("no more matter"));
  const RankLoss loss = Loss();
  EXPECT_EQ(loss.rank, 1);
  EXPECT_NE(loss.status.message().find("rank 1 failed in step, step 12: no more matter"),
            std::string::npos)
      << loss.status.message();
}

TEST_F(GroupServiceTest, TheEndOfTheEpochReachesTheRanksAsABreak) {
  JoinBoth();
  board_.Stop();
  service_->Break(Unavailable("the leader ended the epoch: rank 2 is gone"));
  const auto plan = one_->client->ReceivePlan();
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().message(), "the leader ended the epoch: rank 2 is gone");
}

TEST_F(GroupServiceTest, ALeaderThatIsGoneEndsTheRanksWaits) {
  JoinBoth();
  board_.Stop();
  server_.reset();
  EXPECT_FALSE(one_->client->ReceivePlan());
  EXPECT_FALSE(two_->client->ReceivePlan());
}

TEST_F(GroupServiceTest, NoLeaderIsAnErrorAfterTheLimit) {
  SystemClock clock;
  LeaderBoard board(clock, [](const Status&) {});
  const auto joined =
      JoinGroup("unix:/nowhere/levin-group", Of(1), board, std::chrono::milliseconds(50));
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace levin
