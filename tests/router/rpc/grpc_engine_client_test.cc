#include "router/rpc/grpc_engine_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "router/dispatch/wake_bell.h"
#include "tests/router/rpc/scripted_engine.h"
#include "tests/support/recording_sink.h"

namespace levin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GrpcEngineClientTest : public ::testing::Test {
 protected:
  ~GrpcEngineClientTest() override {
    if (client_) client_->Stop();
  }

  void Start(std::function<void(GrpcEngineClientOptions&)> change = {}) {
    GrpcEngineClientOptions options;
    options.address = engine_->address();
    options.router_id = "router-test";
    options.router_incarnation = 42;
    options.reconnect_min = milliseconds(5);
    options.reconnect_max = milliseconds(50);
    // The scripted leader sends no heartbeats: silence means nothing, unless a test says so.
    options.suspect = seconds(600);
    options.lost = seconds(1200);
    if (change) change(options);
    client_ = std::make_unique<GrpcEngineClient>(options, clock_, [this] { changes_.Ring(); });
  }
  bool AwaitReady(bool ready) {
    const auto until = clock_.Now() + seconds(20);
    while ((client_->group() != nullptr) != ready) {
      if (clock_.Now() > until) return false;
      changes_.Wait(until);
    }
    return true;
  }
  void StartAndAwait(std::function<void(GrpcEngineClientOptions&)> change = {}) {
    Start(std::move(change));
    ASSERT_TRUE(AwaitReady(true));
    ASSERT_TRUE(engine_->AwaitSessions(1));
  }

  bool Until(const std::function<bool()>& condition) const {
    const auto until = clock_.Now() + seconds(20);
    while (!condition()) {
      if (clock_.Now() > until) return false;
      std::this_thread::yield();
    }
    return true;
  }

  struct Asked {
    std::shared_ptr<SinkRecord> record = std::make_shared<SinkRecord>();
    std::unique_ptr<Call> call;
    Status refusal;
  };
  Asked Submit(size_t prompt = 3, int32_t max_new_tokens = 10, int64_t deadline_in_ms = 0) {
    Asked asked;
    Generation generation;
    generation.prompt.assign(prompt, 5);
    generation.max_new_tokens = max_new_tokens;
    generation.sampling.seed = 9;
    if (deadline_in_ms > 0) generation.deadline_unix_ms = clock_.UnixMs() + deadline_in_ms;
    auto call =
        client_->Submit(std::move(generation), std::make_unique<RecordingSink>(asked.record));
    if (call)
      asked.call = std::move(*call);
    else
      asked.refusal = call.error();
    return asked;
  }

  SystemClock clock_;
  WakeBell changes_;
  std::unique_ptr<ScriptedEngine> engine_ = std::make_unique<ScriptedEngine>();
  std::unique_ptr<GrpcEngineClient> client_;
};

TEST_F(GrpcEngineClientTest, KnowsTheGroupAfterTheHandshake) {
  StartAndAwait();
  const auto group = client_->group();
  EXPECT_EQ(group->group_id, "scripted");
  EXPECT_EQ(group->epoch, 7u);
  EXPECT_EQ(group->max_model_len, 1000);
  EXPECT_EQ(group->ranks, 2);
  EXPECT_EQ(client_->capacity().total_blocks, 100);
  EXPECT_EQ(client_->capacity().bytes_per_block, 4096);
}

TEST_F(GrpcEngineClientTest, CarriesOneGenerationThere_AndItsTokensBack) {
  StartAndAwait();
  Asked one = Submit();
  const v1::SessionRequest frame = engine_->Next();
  ASSERT_TRUE(frame.has_submit());
  EXPECT_EQ(frame.submit().ordinal(), 1u);
  EXPECT_EQ(frame.submit().prompt_ids_size(), 3);
  EXPECT_EQ(frame.submit().request_id().size(), 16u);
  EXPECT_EQ(frame.submit().sampling().seed(), 9u);
  engine_->SendAccepted(1, true);
  engine_->SendTokens(1, 0, {11, 12});
  engine_->SendTokens(1, 2, {13});
  engine_->SendFinished(1, 3);
  ASSERT_TRUE(one.record->WaitForDone());
  EXPECT_THAT(one.record->tokens(), ElementsAre(11, 12, 13));
  EXPECT_TRUE(one.record->done()->status.ok());
  EXPECT_EQ(one.record->done()->reason, FinishReason::kStop);
  EXPECT_TRUE(one.record->in_order());
  EXPECT_TRUE(engine_->AwaitFinished(1));
}

TEST_F(GrpcEngineClientTest, RepeatsTheFinishedSetUntilItIsAcknowledged) {
  StartAndAwait([](auto& options) { options.heartbeat = milliseconds(20); });
  Asked one = Submit();
  ASSERT_TRUE(engine_->Next().has_submit());
  one.call.reset();
  EXPECT_EQ(engine_->Next().cancel().reason(), v1::CANCEL_REASON_CLIENT_GONE);
  EXPECT_TRUE(engine_->AwaitFinished(1));
  EXPECT_TRUE(engine_->AwaitFinished(1));
  EXPECT_EQ(client_->tracker().unfreed(), 1);
  engine_->SendFreed(1);
  ASSERT_TRUE(Until([&] { return client_->tracker().unfreed() == 0; }));
  // A later generation's Submit follows what was on its way; then silence.
  Asked two = Submit();
  while (!engine_->Next().has_submit()) {
  }
  EXPECT_EQ(engine_->Next(milliseconds(100)).seq(), 0u);
}

TEST_F(GrpcEngineClientTest, ADeadlineEndsItThoughTheLeaderIsSilent) {
  StartAndAwait();
  Asked one = Submit(3, 10, 50);
  const v1::SessionRequest frame = engine_->Next();
  EXPECT_GT(frame.submit().remaining_ms(), 0);
  EXPECT_LE(frame.submit().remaining_ms(), 50);
  ASSERT_TRUE(one.record->WaitForDone());
  EXPECT_EQ(one.record->done()->status.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(engine_->Next().cancel().reason(), v1::CANCEL_REASON_DEADLINE);
}

TEST_F(GrpcEngineClientTest, AnErrorFrameReachesItsGeneration) {
  StartAndAwait();
  Asked one = Submit();
  Asked two = Submit();
  engine_->Next();
  engine_->Next();
  v1::SessionResponse error;
  ToProto(Status(Code::kInvalidArgument, "CACHE_NEVER_FITS", "needs 9 of 4 blocks"), 1, false,
          error.mutable_error());
  engine_->Send(error);
  ToProto(Status(Code::kAborted, "STALE_ATTEMPT", "attempt 1, 2 was seen"), 2, false,
          error.mutable_error());
  engine_->Send(error);
  ASSERT_TRUE(one.record->WaitForDone());
  EXPECT_EQ(one.record->done()->status.reason(), "CACHE_NEVER_FITS");
  ASSERT_TRUE(two.record->WaitForDone());
  EXPECT_EQ(two.record->done()->status.reason(), "INTERNAL");  // no business of a client
}

TEST_F(GrpcEngineClientTest, ABrokenSessionEndsAllAndANewOneOpens) {
  StartAndAwait();
  Asked before = Submit();
  Asked after = Submit();
  engine_->Next();
  engine_->Next();
  engine_->SendTokens(2, 0, {11});
  ASSERT_TRUE(after.record->WaitForTokens(1));
  engine_->set_epoch(8);
  engine_->Break();
  ASSERT_TRUE(before.record->WaitForDone());
  EXPECT_EQ(before.record->done()->status.reason(), "EPOCH_ENDED");
  ASSERT_TRUE(after.record->WaitForDone());
  EXPECT_EQ(after.record->done()->status.reason(), "ENGINE_RESTARTED");

  ASSERT_TRUE(engine_->AwaitSessions(2));
  ASSERT_TRUE(AwaitReady(true));
  EXPECT_EQ(client_->group()->epoch, 8u);
  EXPECT_TRUE(engine_->AwaitFinished(2));  // the new one learns what is over
  Asked again = Submit();
  EXPECT_EQ(engine_->Next().submit().ordinal(), 3u);
  engine_->SendTokens(3, 0, {1});
  engine_->SendFinished(3, 1);
  ASSERT_TRUE(again.record->WaitForDone());
  EXPECT_TRUE(again.record->done()->status.ok());
}

TEST_F(GrpcEngineClientTest, TheDeathOfTheLeaderEndsAllAndItsSuccessorAtTheSameAddressIsFound) {
  const std::string path = "unix:" + ::testing::TempDir() + "/engine-" + std::to_string(getpid());
  engine_ = std::make_unique<ScriptedEngine>(path);
  StartAndAwait();
  Asked one = Submit();
  engine_->Next();
  engine_->Kill();
  ASSERT_TRUE(one.record->WaitForDone());
  EXPECT_EQ(one.record->done()->status.reason(), "EPOCH_ENDED");
  ASSERT_TRUE(AwaitReady(false));
  EXPECT_EQ(Submit().refusal.code(), Code::kUnavailable);

  engine_ = std::make_unique<ScriptedEngine>(path);
  engine_->set_epoch(9);
  ASSERT_TRUE(AwaitReady(true));
}

TEST_F(GrpcEngineClientTest, TheEndOfTheEpochNamesItsReason) {
  StartAndAwait();
  Asked one = Submit();
  engine_->Next();
  v1::SessionResponse end;
  end.mutable_epoch_end()->set_reason("rank_lost");
  end.mutable_epoch_end()->set_rank(1);
  engine_->Send(end);
  ASSERT_TRUE(one.record->WaitForDone());
  EXPECT_EQ(one.record->done()->status.reason(), "EPOCH_ENDED");
  EXPECT_THAT(one.record->done()->status.message(), HasSubstr("rank_lost, rank 1"));
}

TEST_F(GrpcEngineClientTest, AGapInTheTokensClosesTheSession) {
  StartAndAwait();
  Asked one = Submit();
  engine_->Next();
  engine_->SendTokens(1, 0, {11});
  engine_->SendTokens(1, 2, {13});
  ASSERT_TRUE(one.record->WaitForDone());
  EXPECT_EQ(one.record->done()->status.reason(), "ENGINE_RESTARTED");
  EXPECT_THAT(one.record->tokens(), ElementsAre(11));
  EXPECT_TRUE(engine_->AwaitSessions(2));
}

TEST_F(GrpcEngineClientTest, FramesOfAnotherEpochAreDropped) {
  StartAndAwait();
  Asked one = Submit();
  engine_->Next();
  engine_->SendTokens(1, 0, {99}, /*epoch=*/6);
  engine_->SendTokens(1, 0, {11});
  engine_->SendFinished(1, 1);
  ASSERT_TRUE(one.record->WaitForDone());
  EXPECT_THAT(one.record->tokens(), ElementsAre(11));
}

TEST_F(GrpcEngineClientTest, TriesAgainUntilAHandshakeSucceeds) {
  engine_->RefuseHandshakes({grpc::StatusCode::UNAVAILABLE, "still loading"});
  Start();
  ASSERT_TRUE(Until([&] { return engine_->handshakes() >= 3; }));
  EXPECT_EQ(client_->group(), nullptr);
  const Asked refused = Submit();
  EXPECT_EQ(refused.refusal.reason(), "NO_GROUP");
  EXPECT_THAT(refused.refusal.message(), HasSubstr("still loading"));
  EXPECT_GT(refused.refusal.retry_after_ms(), 0);
  engine_->RefuseHandshakes(grpc::Status::OK);
  EXPECT_TRUE(AwaitReady(true));
}

TEST_F(GrpcEngineClientTest, ALowerEpochThanSeenIsRefused) {
  StartAndAwait();
  engine_->set_epoch(6);
  engine_->Break();
  ASSERT_TRUE(AwaitReady(false));
  ASSERT_TRUE(Until([&] { return engine_->handshakes() >= 3; }));
  EXPECT_EQ(client_->group(), nullptr);
  EXPECT_THAT(Submit().refusal.message(), HasSubstr("epoch 7 was seen before"));
}

TEST_F(GrpcEngineClientTest, ASilentLeaderIsSuspectedThenLost) {
  StartAndAwait([](auto& options) {
    options.heartbeat = milliseconds(50);
    options.suspect = milliseconds(200);
    options.lost = milliseconds(800);
  });
  Asked one = Submit();
  ASSERT_TRUE(engine_->Next().has_submit());
  ASSERT_TRUE(AwaitReady(false));
  EXPECT_FALSE(one.record->done());  // what is there stays
  EXPECT_EQ(Submit().refusal.reason(), "NO_GROUP");
  engine_->SendTokens(1, 0, {11});  // a sign of life
  ASSERT_TRUE(AwaitReady(true));
  ASSERT_TRUE(one.record->WaitForDone());  // and then none
  EXPECT_EQ(one.record->done()->status.reason(), "ENGINE_RESTARTED");
  EXPECT_TRUE(engine_->AwaitSessions(2));
}

TEST_F(GrpcEngineClientTest, SendsHeartbeatsWithItsLiveSet) {
  StartAndAwait([](auto& options) { options.heartbeat = milliseconds(10); });
  Asked one = Submit();
  ASSERT_TRUE(engine_->Next().has_submit());
  v1::SessionRequest beat;
  const std::vector<uint64_t> live = {1};
  do {
    beat = engine_->NextOfAnyKind();
    ASSERT_NE(beat.seq(), 0u);
  } while (!beat.has_heartbeat() || beat.heartbeat().live() != 1);
  EXPECT_EQ(beat.heartbeat().live_digest(), HashOrdinals(live));
}

TEST_F(GrpcEngineClientTest, RefusesWhatTheGroupCannotHold) {
  StartAndAwait();
  EXPECT_EQ(Submit(3, 998).refusal.reason(), "CONTEXT_LENGTH_EXCEEDED");
  EXPECT_EQ(Submit(501, 1).refusal.reason(), "CONTEXT_LENGTH_EXCEEDED");
  EXPECT_EQ(Submit(0, 1).refusal.code(), Code::kInvalidArgument);
  EXPECT_TRUE(Submit(3, 997).refusal.ok());
}

TEST_F(GrpcEngineClientTest, ADrainingGroupGetsNoNewWork) {
  StartAndAwait();
  Asked one = Submit();
  engine_->Next();
  v1::SessionResponse frame;
  frame.mutable_capacity()->set_draining(true);
  engine_->Send(frame);
  ASSERT_TRUE(AwaitReady(false));
  EXPECT_EQ(Submit().refusal.reason(), "DRAINING");
  engine_->SendTokens(1, 0, {11});
  engine_->SendFinished(1, 1);
  ASSERT_TRUE(one.record->WaitForDone());
  EXPECT_TRUE(one.record->done()->status.ok());
}

TEST_F(GrpcEngineClientTest, AGroupWithASilentRankGetsNoNewWorkUntilTheRankIsBack) {
  StartAndAwait();
  Asked one = Submit();
  ASSERT_TRUE(engine_->Next().has_submit());
  v1::SessionResponse frame;
  frame.mutable_capacity()->set_suspect(true);
  engine_->Send(frame);
  ASSERT_TRUE(AwaitReady(false));
  const Asked refused = Submit();
  EXPECT_EQ(refused.refusal.reason(), "NO_GROUP");
  EXPECT_THAT(refused.refusal.message(), HasSubstr("rank"));
  engine_->SendTokens(1, 0, {11});  // the leader lives: no sign that the rank does
  ASSERT_TRUE(one.record->WaitForTokens(1));
  EXPECT_EQ(client_->group(), nullptr);
  EXPECT_FALSE(one.record->done());  // what is there stays

  frame.mutable_capacity()->set_suspect(false);
  engine_->Send(frame);
  ASSERT_TRUE(AwaitReady(true));
  Asked two = Submit();
  EXPECT_TRUE(two.refusal.ok());
  EXPECT_EQ(engine_->Next().submit().ordinal(), 2u);
  engine_->SendTokens(1, 1, {12});
  engine_->SendFinished(1, 2);
  ASSERT_TRUE(one.record->WaitForDone());
  EXPECT_THAT(one.record->tokens(), ElementsAre(11, 12));
  EXPECT_TRUE(one.record->done()->status.ok());
}

TEST_F(GrpcEngineClientTest, StopEndsAllAndSaysGoodbye) {
  StartAndAwait();
  Asked one = Submit();
  engine_->Next();
  client_->Stop();
  ASSERT_TRUE(one.record->done());
  EXPECT_EQ(one.record->done()->status.reason(), "DRAINING");
  EXPECT_TRUE(engine_->AwaitHalfClose());
  EXPECT_EQ(Submit().refusal.reason(), "DRAINING");
}

TEST_F(GrpcEngineClientTest, StopsWhileNobodyAnswers) {
  engine_->Kill();
  Start();
  client_->Stop();
  EXPECT_EQ(client_->group(), nullptr);
}

}  // namespace
}  // namespace levin
