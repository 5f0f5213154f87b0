#include "worker/session/session_hub.h"

#include <gtest/gtest.h>

#include <limits>

#include "common/rpc/limits.h"
#include "tests/support/fake_clock.h"
#include "tests/worker/session/fake_door.h"

namespace levin {
namespace {

constexpr uint64_t kEpoch = 1'700'000'000'000;

class SessionHubTest : public ::testing::Test {
 protected:
  SessionHubTest() { hub_.SetReady(); }

  static RouterHello Hello(const std::string& id = "r", uint64_t incarnation = 1) {
    return {.protocol_major = kProtocolMajor,
            .router_id = id,
            .incarnation = incarnation,
            .highest_epoch_seen = 0,
            .tokenizer_hash = 0};
  }
  std::shared_ptr<Session> Open(FakeDoor& door, const RouterHello& hello = Hello()) {
    const Result<std::string> token = hub_.Handshake(hello);
    EXPECT_TRUE(token) << token.error().message();
    Result<std::shared_ptr<Session>> session = hub_.Open(*token, door);
    EXPECT_TRUE(session) << session.error().message();
    return *session;
  }
  void Submit(Session& session, uint64_t ordinal) {
    Generation generation;
    generation.ordinal = ordinal;
    generation.prompt = {1, 2};
    hub_.OnSubmit(session, std::move(generation), 0);
  }
  template <typename Event>
  void Deliver(uint32_t router, Event event) {
    std::vector<RouterEvent> events;
    events.push_back({router, std::move(event)});
    hub_.Deliver(std::move(events));
  }
  // What the engine's inbox got since the last call, as short words: "submit 1 of router 1".
  std::vector<std::string> Commands() {
    std::vector<std::string> words;
    for (const RouterCommand& command : inbox_.Drain()) {
      std::string what = "gone";
      if (const auto* submit = std::get_if<SubmitCommand>(&command.what))
        what = "submit " + std::to_string(submit->generation.ordinal);
      if (const auto* cancel = std::get_if<CancelCommand>(&command.what))
        what = "cancel " + std::to_string(cancel->ordinal);
      if (const auto* set = std::get_if<FinishedSetCommand>(&command.what))
        what = "finished " + std::to_string(set->watermark);
      words.push_back(what + " of router " + std::to_string(command.router));
    }
    return words;
  }
  using Words = std::vector<std::string>;

  FakeClock clock_;
  Mailbox<RouterCommand> inbox_{4};
  SessionHub hub_{HubOptions{.epoch = kEpoch, .tokenizer_hash = 77}, inbox_, clock_};
  FakeDoor door_, other_door_;
};

TEST_F(SessionHubTest, WhileTheModelLoadsAHandshakeSaysSo) {
  SessionHub loading({.epoch = kEpoch}, inbox_, clock_);
  EXPECT_EQ(loading.Handshake(Hello()).error().reason(), "MODEL_LOADING");
}

TEST_F(SessionHubTest, AHandshakeRefusesWhatDoesNotFit) {
  RouterHello hello = Hello();
  hello.protocol_major = 9;
  EXPECT_EQ(hub_.Handshake(hello).error().reason(), "PROTOCOL_VERSION");
  hello = Hello();
  hello.tokenizer_hash = 78;
  EXPECT_EQ(hub_.Handshake(hello).error().reason(), "TOKENIZER_MISMATCH");
  EXPECT_EQ(hub_.Handshake(hello).error().code(), Code::kFailedPrecondition);
  hello.tokenizer_hash = 77;
  EXPECT_TRUE(hub_.Handshake(hello));
}

TEST_F(SessionHubTest, AHigherEpochIsRememberedUnlessItIsAbsurd) {
  RouterHello hello = Hello();
  hello.highest_epoch_seen = kEpoch + 2 * static_cast<uint64_t>(kEpochAheadMsMax);
  EXPECT_EQ(hub_.Handshake(hello).error().reason(), "EPOCH_MISMATCH");
  EXPECT_EQ(hub_.higher_epoch(), 0u);
  hello.highest_epoch_seen = kEpoch + 5;
  EXPECT_EQ(hub_.Handshake(hello).error().reason(), "EPOCH_MISMATCH");
  EXPECT_EQ(hub_.higher_epoch(), kEpoch + 5);
}

TEST_F(SessionHubTest, OnlyTheTokenOfAHandshakeOpensASession) {
  EXPECT_EQ(hub_.Open("guess", door_).error().reason(), "SESSION_ENDED");
  const std::string token = *hub_.Handshake(Hello());
  EXPECT_EQ(*hub_.Handshake(Hello()), token);
  EXPECT_NE(*hub_.Handshake(Hello("another")), token);
}

TEST_F(SessionHubTest, AFreshSessionIsToldTheCapacityAtOnce) {
  hub_.OnCapacity(Capacity{.total_blocks = 9, .free_blocks = 8});
  Open(door_);
  const auto capacity = door_.Of<Capacity>();
  ASSERT_EQ(capacity.size(), 1u);
  EXPECT_EQ(capacity[0].free_blocks, 8);
  EXPECT_EQ(capacity[0].submit_window, kSubmitWindow);
}

TEST_F(SessionHubTest, FramesBecomeCommandsInOrder) {
  const auto session = Open(door_);
  Submit(*session, 1);
  hub_.OnCancel(*session, {.ordinal = 1, .attempt = 1});
  hub_.OnFinishedSet(*session, {.watermark = 1, .live = {}});
  EXPECT_EQ(Commands(),
            (Words{"submit 1 of router 1", "cancel 1 of router 1", "finished 1 of router 1"}));
}

TEST_F(SessionHubTest, EventsReachTheirRouterAlone) {
  const auto session = Open(door_);
  const auto other = Open(other_door_, Hello("other"));
  Deliver(other->router(), FinishedEvent{.ordinal = 4});
  door_.Flush(*session);
  other_door_.Flush(*other);
  EXPECT_TRUE(door_.Of<FinishedEvent>().empty());
  EXPECT_EQ(other_door_.Of<FinishedEvent>().at(0).ordinal, 4u);
  Deliver(99, FinishedEvent{.ordinal = 4});  // a router that is gone
}

TEST_F(SessionHubTest, AFullInboxRefusesASubmitWithALaterRetry) {
  const auto session = Open(door_);
  for (uint64_t ordinal = 1; ordinal <= 5; ++ordinal) Submit(*session, ordinal);
  door_.Flush(*session);
  const auto errors = door_.Of<ErrorEvent>();
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].ordinal, 5u);
  EXPECT_EQ(errors[0].status.reason(), "QUEUE_FULL");
  EXPECT_GT(errors[0].status.retry_after_ms(), 0);
}

TEST_F(SessionHubTest, TheSubmitWindowCountsWhatWaits) {
  const auto session = Open(door_);
  Submit(*session, 1);
  Submit(*session, 2);
  hub_.OnCapacity({});
  Deliver(1, AcceptedEvent{.ordinal = 1, .admitted = false});
  Deliver(1, AcceptedEvent{.ordinal = 1, .admitted = true});
  door_.Flush(*session);
  hub_.OnCapacity({});
  door_.Flush(*session);
  const auto capacity = door_.Of<Capacity>();
  EXPECT_EQ(capacity[capacity.size() - 2].submit_window, kSubmitWindow - 2);
  EXPECT_EQ(capacity.back().submit_window, kSubmitWindow - 1);
}

TEST_F(SessionHubTest, ANewIncarnationEndsTheOldLeaseAtOnce) {
  const auto old = Open(door_);
  Submit(*old, 1);
  const auto fresh = Open(other_door_, Hello("r", 2));
  EXPECT_NE(fresh->router(), old->router());
  EXPECT_EQ(Commands(), (Words{"submit 1 of router 1", "gone of router 1"}));
  door_.Flush(*old);
  EXPECT_EQ(door_.end->reason(), "SESSION_ENDED");
  Submit(*old, 2);  // a late frame of the old one goes nowhere
  EXPECT_TRUE(Commands().empty());
}

TEST_F(SessionHubTest, ASecondSessionOfTheSameIncarnationReplacesTheFirst) {
  const auto first = Open(door_);
  const auto second = Open(other_door_);
  EXPECT_EQ(first->router(), second->router());
  door_.Flush(*first);
  EXPECT_EQ(door_.end->reason(), "SESSION_ENDED");
  hub_.OnEnd(first, false);
  Submit(*second, 1);
  EXPECT_EQ(Commands(), (Words{"submit 1 of router 1"}));
}

TEST_F(SessionHubTest, AHalfCloseMeansThatTheRouterIsGone) {
  const auto session = Open(door_);
  session->Close(Status::Ok());  // as the reactor does when reads end
  door_.Flush(*session);
  hub_.OnEnd(session, true);
  EXPECT_EQ(Commands(), (Words{"gone of router 1"}));
  EXPECT_EQ(hub_.connected_routers(), 0);
}

TEST_F(SessionHubTest, ABrokenStreamLeavesTheLeaseRunning) {
  const auto session = Open(door_);
  session->Close(Status::Ok());
  hub_.OnEnd(session, false);
  EXPECT_TRUE(Commands().empty());
  EXPECT_EQ(hub_.connected_routers(), 1);
  clock_.Advance(std::chrono::seconds(2));
  const auto again = Open(other_door_);
  EXPECT_EQ(again->router(), session->router());
}

TEST_F(SessionHubTest, AnyFrameRenewsTheLeaseAndSilenceEndsIt) {
  const auto session = Open(door_);
  for (int second = 0; second < 30; ++second) {
    clock_.Advance(std::chrono::seconds(1));
    if (second < 15) hub_.OnHeartbeat(*session);
    hub_.Tick();
    door_.Flush(*session);
    EXPECT_EQ(hub_.connected_routers(), second < 25 ? 1 : 0) << second;
  }
  EXPECT_EQ(Commands(), (Words{"gone of router 1"}));
  EXPECT_EQ(door_.end->reason(), "SESSION_ENDED");
}

TEST_F(SessionHubTest, AStallOfOurOwnDoesNotCountAgainstTheRouters) {
  const auto session = Open(door_);
  hub_.Tick();
  clock_.Advance(std::chrono::minutes(5));
  hub_.Tick();
  EXPECT_EQ(hub_.connected_routers(), 1);
}

TEST_F(SessionHubTest, ARouterThatIsGoneIsToldAgainWhenTheInboxWasFull) {
  const auto session = Open(door_);
  for (uint64_t ordinal = 1; ordinal <= 4; ++ordinal) Submit(*session, ordinal);
  hub_.OnEnd(session, false);
  for (int second = 0; second < 12; ++second) {
    clock_.Advance(std::chrono::seconds(1));
    hub_.Tick();
  }
  EXPECT_EQ(Commands().size(), 4u);
  hub_.Tick();
  EXPECT_EQ(Commands(), (Words{"gone of router 1"}));
}

TEST_F(SessionHubTest, EachTickSaysWhatLives) {
  const auto session = Open(door_);
  Submit(*session, 3);
  Submit(*session, 5);
  Deliver(1, FinishedEvent{.ordinal = 3});
  hub_.Tick();
  door_.Flush(*session);
  EXPECT_EQ(door_.Of<HeartbeatFrame>().back().live, (std::vector<uint64_t>{5}));
}

TEST_F(SessionHubTest, ADrainRefusesNewWorkAndClosesTheInboxBehindTheLastEnd) {
  const auto session = Open(door_);
  Submit(*session, 1);
  hub_.StartDrain();
  Submit(*session, 2);
  door_.Flush(*session);
  EXPECT_EQ(door_.Of<ErrorEvent>().at(0).status.reason(), "DRAINING");
  EXPECT_TRUE(door_.Of<Capacity>().back().draining);
  EXPECT_FALSE(inbox_.closed());
  Deliver(1, FinishedEvent{.ordinal = 1});
  EXPECT_TRUE(inbox_.closed());
}

TEST_F(SessionHubTest, ASilentRankIsToldAtOnceAndAgainWithEachCapacityUntilItIsBack) {
  const auto session = Open(door_);
  hub_.SetSuspect(true);
  door_.Flush(*session);
  EXPECT_TRUE(door_.Of<Capacity>().back().suspect);
  EXPECT_TRUE(hub_.capacity().suspect);
  hub_.OnCapacity(Capacity{.free_blocks = 8});  // the engine knows nothing of it
  door_.Flush(*session);
  EXPECT_EQ(door_.Of<Capacity>().back().free_blocks, 8);
  EXPECT_TRUE(door_.Of<Capacity>().back().suspect);
  const size_t told = door_.Of<Capacity>().size();
  hub_.SetSuspect(true);
  door_.Flush(*session);
  EXPECT_EQ(door_.Of<Capacity>().size(), told);
  hub_.SetSuspect(false);
  door_.Flush(*session);
  EXPECT_FALSE(door_.Of<Capacity>().back().suspect);
  EXPECT_FALSE(hub_.capacity().suspect);
}

TEST_F(SessionHubTest, ASubmitOnItsWayToASuspectGroupIsTaken) {
  const auto session = Open(door_);
  hub_.SetSuspect(true);
  Submit(*session, 1);
  door_.Flush(*session);
  EXPECT_TRUE(door_.Of<ErrorEvent>().empty());
  EXPECT_EQ(Commands(), (Words{"submit 1 of router 1"}));
}

TEST_F(SessionHubTest, AnIdleDrainIsOverAtOnce) {
  hub_.StartDrain();
  EXPECT_TRUE(inbox_.closed());
}

TEST_F(SessionHubTest, CancelAllNamesEveryLiveGeneration) {
  const auto session = Open(door_);
  Submit(*session, 1);
  Submit(*session, 2);
  Deliver(1, FinishedEvent{.ordinal = 1});
  (void)Commands();
  hub_.CancelAll();
  EXPECT_EQ(Commands(), (Words{"cancel 2 of router 1"}));
}

TEST_F(SessionHubTest, TheEndOfTheEpochIsTheLastFrame) {
  const auto session = Open(door_);
  hub_.EndEpoch(
      {.reason = "rank_lost", .rank = 1, .last_good_step = 7, .message = "rank 1 is gone"});
  Deliver(1, FinishedEvent{.ordinal = 1});
  door_.Flush(*session);
  EXPECT_EQ(std::get<EpochEndFrame>(door_.frames.back()).rank, 1);
  EXPECT_EQ(door_.end->reason(), "EPOCH_ENDED");
  EXPECT_EQ(hub_.Handshake(Hello()).error().reason(), "EPOCH_ENDED");
  hub_.OnEnd(session, true);
  hub_.AwaitEnds(std::chrono::steady_clock::now());
  EXPECT_TRUE(Commands().empty());
}

TEST_F(SessionHubTest, TheEarlierOfDeadlineAndRemainingTimeCounts) {
  const auto session = Open(door_);
  const int64_t now = clock_.UnixMs();
  const auto deadline = [&](int64_t absolute, int64_t remaining) {
    Generation generation;
    generation.ordinal = 1;
    generation.deadline_unix_ms = absolute;
    hub_.OnSubmit(*session, std::move(generation), remaining);
    return std::get<SubmitCommand>(inbox_.Drain().at(0).what).generation.deadline_unix_ms;
  };
  EXPECT_EQ(deadline(0, 0), 0);
  EXPECT_EQ(deadline(now + 500, 0), now + 500);
  EXPECT_EQ(deadline(now + 9000, 500), now + 500);
  EXPECT_EQ(deadline(now + 100, 500), now + 100);
  EXPECT_EQ(deadline(0, 500), now + 500);
  EXPECT_GT(deadline(0, std::numeric_limits<int64_t>::max()), now);
}

TEST_F(SessionHubTest, APromptThatIsTooLongForOneFrameIsRefused) {
  const auto session = Open(door_);
  Generation generation;
  generation.ordinal = 1;
  generation.prompt.assign(static_cast<size_t>(kPromptInlineIdsMax) + 1, 1);
  hub_.OnSubmit(*session, std::move(generation), 0);
  door_.Flush(*session);
  EXPECT_EQ(door_.Of<ErrorEvent>().at(0).status.code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace levin
