#include "worker/rpc/engine_service.h"

#include <gtest/gtest.h>

#include <thread>

#include "common/rpc/engine_codec.h"
#include "tests/support/scripted_model.h"
#include "tests/worker/rpc/router_peer.h"
#include "worker/engine/engine.h"
#include "worker/rpc/rpc_server.h"

namespace levin {
namespace {

constexpr int32_t kVocab = 64;
constexpr uint64_t kEpoch = 7;

SchedulerOptions Steps() {
  SchedulerOptions options;
  options.max_num_seqs = 4;
  options.slots = 4;
  options.blocks = 64;
  options.tokens_per_step_max = 256;
  options.max_model_len = 100'000;
  options.vocab_size = kVocab;
  options.epoch = kEpoch;
  return options;
}

PlanLimits Limits(const SchedulerOptions& options) {
  return {.epoch = options.epoch,
          .slots = options.slots,
          .blocks = options.blocks,
          .block_tokens = options.block_tokens,
          .rows_max = options.rows_max(),
          .tokens_max = options.step_tokens_max(),
          .vocab_size = options.vocab_size};
}

// A leader whose network is scripted, behind a real server; the engine runs on its own thread.
class EngineServiceTest : public ::testing::Test {
 protected:
  EngineServiceTest() {
    service_->SetFacts({.group_id = "g",
                        .tokenizer_hash = 77,
                        .model_digest = 5,
                        .ranks = 2,
                        .vocab_size = kVocab,
                        .max_model_len = 100'000});
    Result<std::unique_ptr<RpcServer>> server = StartRpcServer("127.0.0.1:0", service_->service());
    EXPECT_TRUE(server) << server.error().message();
    server_ = *std::move(server);
    hub_.SetReady();
    thread_ = std::thread([this] { engine_status_ = engine_.Run(); });
  }
  ~EngineServiceTest() override {
    inbox_.Close();
    thread_.join();
  }

  Generation Ask(uint64_t ordinal, int32_t max_new) const {
    Generation generation;
    generation.ordinal = ordinal;
    generation.request_id = std::string(15, 'r') + static_cast<char>('a' + ordinal);
    generation.prompt = {1, 2, 3};
    generation.max_new_tokens = max_new;
    generation.sampling.seed = ordinal;
    return generation;
  }
  static v1::SessionRequest SubmitFrame(const Generation& generation) {
    v1::SessionRequest request;
    ToProto(generation, request.mutable_submit());
    return request;
  }
  static v1::SessionRequest FinishedFrame(const OrdinalSet& set) {
    v1::SessionRequest request;
    ToProto(set, request.mutable_finished_set());
    return request;
  }
  static std::vector<TokenId> Alone(const Generation& generation) {
    Sampler sampler(kVocab, {});
    return testing::RunAlone(generation, sampler, kVocab).tokens;
  }
  // Tokens of one generation up to its Finished, checked for dense indices.
  std::vector<TokenId> ReadToEnd(RouterPeer& router, uint64_t ordinal, v1::Finished& finished) {
    std::vector<TokenId> ids;
    v1::SessionResponse frame;
    const bool ended = router.Await(
        [&](const v1::SessionResponse& f) {
          for (const v1::TokenRun& run : f.tokens().runs()) {
            if (run.ordinal() != ordinal) continue;
            EXPECT_EQ(run.first_index(), ids.size());
            ids.insert(ids.end(), run.ids().begin(), run.ids().end());
          }
          return f.finished().ordinal() == ordinal;
        },
        frame);
    EXPECT_TRUE(ended) << "the stream ended before generation " << ordinal;
    finished = frame.finished();
    return ids;
  }

  SystemClock clock_;
  Mailbox<RouterCommand> inbox_{64};
  SessionHub hub_{HubOptions{.epoch = kEpoch, .tokenizer_hash = 77}, inbox_, clock_};
  testing::ScriptedModel model_{Steps().slots, Steps().blocks, 64, kVocab};
  RankExecutor executor_{Limits(Steps()), model_, {}};
  Engine engine_{EngineOptions{.bytes_per_block = 10, .bytes_per_slot = 20},
                 Scheduler(Steps()),
                 executor_,
                 nullptr,
                 hub_,
                 inbox_,
                 clock_};
  std::unique_ptr<EngineService> service_ = MakeEngineService(hub_);
  std::unique_ptr<RpcServer> server_;
  Status engine_status_;
  std::thread thread_;
};

TEST_F(EngineServiceTest, AHandshakeDescribesTheGroup) {
  RouterPeer router(server_->address());
  ASSERT_TRUE(router.Handshake(router.Hello()).ok());
  EXPECT_EQ(router.info.epoch(), kEpoch);
  EXPECT_EQ(router.info.group_id(), "g");
  EXPECT_EQ(router.info.geometry().ranks(), 2u);
  EXPECT_EQ(router.info.geometry().vocab_size(), 64u);
  EXPECT_EQ(router.info.lease_seconds(), 10u);
  EXPECT_FALSE(router.info.session_token().empty());
}

TEST_F(EngineServiceTest, AnotherTokenizerIsAFailedPreconditionWithItsReason) {
  RouterPeer router(server_->address());
  v1::HandshakeRequest hello = router.Hello();
  hello.set_tokenizer_hash(78);
  const Status status = router.Handshake(hello);
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_EQ(status.reason(), "TOKENIZER_MISMATCH");
}

TEST_F(EngineServiceTest, ASessionNeedsAToken) {
  RouterPeer router(server_->address());
  router.Open("guess");
  EXPECT_EQ(router.Finish().reason(), "SESSION_ENDED");
}

TEST_F(EngineServiceTest, AGenerationRunsToItsEndAndItsMemoryIsAcknowledged) {
  RouterPeer router(server_->address());
  router.Connect();
  const Generation generation = Ask(1, 20);
  ASSERT_TRUE(router.Send(SubmitFrame(generation)));
  v1::Finished finished;
  const std::vector<TokenId> ids = ReadToEnd(router, 1, finished);
  EXPECT_EQ(ids, Alone(generation));
  EXPECT_EQ(finished.reason(), v1::END_REASON_LENGTH);
  EXPECT_EQ(finished.usage().prompt_tokens(), 3u);
  EXPECT_EQ(finished.usage().output_tokens(), 20u);
  EXPECT_EQ(finished.ids_hash(), HashIds(ids));
  ASSERT_TRUE(router.Send(FinishedFrame({.watermark = 1, .live = {}})));
  v1::SessionResponse frame;
  ASSERT_TRUE(router.Await(
      [](const v1::SessionResponse& f) {
        return f.freed_ack().watermark() == 1 && f.freed_ack().live_delta_size() == 0;
      },
      frame));
  EXPECT_EQ(frame.epoch(), kEpoch);
}

TEST_F(EngineServiceTest, FourAtOnceEachGetWhatTheyGetAlone) {
  RouterPeer router(server_->address());
  router.Connect();
  std::map<uint64_t, std::vector<TokenId>> got;
  for (uint64_t ordinal = 1; ordinal <= 4; ++ordinal)
    ASSERT_TRUE(router.Send(SubmitFrame(Ask(ordinal, 50))));
  int ended = 0;
  v1::SessionResponse frame;
  ASSERT_TRUE(router.Await(
      [&](const v1::SessionResponse& f) {
        for (const v1::TokenRun& run : f.tokens().runs()) {
          EXPECT_EQ(run.first_index(), got[run.ordinal()].size());
          got[run.ordinal()].insert(got[run.ordinal()].end(), run.ids().begin(), run.ids().end());
        }
        return f.has_finished() && ++ended == 4;
      },
      frame));
  for (uint64_t ordinal = 1; ordinal <= 4; ++ordinal)
    EXPECT_EQ(got[ordinal], Alone(Ask(ordinal, 50))) << ordinal;
}

TEST_F(EngineServiceTest, ACancelEndsAGenerationAndFreesItsMemory) {
  RouterPeer router(server_->address());
  router.Connect();
  ASSERT_TRUE(router.Send(SubmitFrame(Ask(1, 3'900))));
  v1::SessionResponse frame;
  ASSERT_TRUE(router.Await(v1::SessionResponse::kTokens, frame));
  v1::SessionRequest cancel;
  cancel.mutable_cancel()->set_ordinal(1);
  cancel.mutable_cancel()->set_attempt(1);
  ASSERT_TRUE(router.Send(cancel));
  v1::Finished finished;
  ASSERT_TRUE(router.Await(v1::SessionResponse::kFinished, frame));
  EXPECT_EQ(frame.finished().reason(), v1::END_REASON_CANCELLED);
  ASSERT_TRUE(router.Await(
      [](const v1::SessionResponse& f) {
        return f.has_capacity() && f.capacity().free_blocks() == 64;
      },
      frame));
  EXPECT_EQ(frame.capacity().running(), 0);
}

TEST_F(EngineServiceTest, AFinishedSetEndsWhatItDoesNotList) {
  RouterPeer router(server_->address());
  router.Connect();
  ASSERT_TRUE(router.Send(SubmitFrame(Ask(1, 3'900))));
  v1::SessionResponse frame;
  ASSERT_TRUE(router.Await(v1::SessionResponse::kTokens, frame));
  ASSERT_TRUE(router.Send(FinishedFrame({.watermark = 1, .live = {}})));
  ASSERT_TRUE(router.Await(
      [](const v1::SessionResponse& f) {
        return f.freed_ack().watermark() == 1 && f.freed_ack().live_delta_size() == 0;
      },
      frame));
  ASSERT_TRUE(router.Await(
      [](const v1::SessionResponse& f) { return f.has_capacity() && f.capacity().running() == 0; },
      frame));
}

TEST_F(EngineServiceTest, ABadSubmitIsRefusedAndTheSessionGoesOn) {
  RouterPeer router(server_->address());
  router.Connect();
  Generation outside = Ask(1, 5);
  outside.prompt = {kVocab};
  ASSERT_TRUE(router.Send(SubmitFrame(outside)));
  v1::SessionResponse frame;
  ASSERT_TRUE(router.Await(v1::SessionResponse::kError, frame));
  EXPECT_EQ(frame.error().ordinal(), 1u);
  EXPECT_EQ(frame.error().code(), static_cast<uint32_t>(Code::kInvalidArgument));
  EXPECT_FALSE(frame.error().blame_group());
  v1::SessionRequest choices = SubmitFrame(Ask(2, 5));
  choices.mutable_submit()->set_n(2);
  ASSERT_TRUE(router.Send(choices));
  ASSERT_TRUE(router.Await(v1::SessionResponse::kError, frame));
  EXPECT_EQ(frame.error().ordinal(), 2u);
  EXPECT_EQ(frame.error().reason(), "UNSUPPORTED");
  ASSERT_TRUE(router.Send(SubmitFrame(Ask(3, 5))));
  v1::Finished finished;
  EXPECT_EQ(ReadToEnd(router, 3, finished).size(), 5u);
}

TEST_F(EngineServiceTest, AGapInTheFramesEndsTheSession) {
  RouterPeer router(server_->address());
  router.Connect();
  v1::SessionRequest beat;
  beat.mutable_heartbeat();
  ASSERT_TRUE(router.Send(beat));
  RouterPeer second(server_->address());
  second.Open(router.info.session_token());  // the same incarnation opens again: numbers start anew
  v1::SessionResponse frame;
  ASSERT_TRUE(second.Await(v1::SessionResponse::kCapacity, frame));
  EXPECT_EQ(router.Finish().reason(), "SESSION_ENDED");
  ASSERT_TRUE(second.Send(beat));
  grpc::ClientContext context;
  context.AddMetadata(kSessionMetadataKey, router.info.session_token());
  auto raw = second.stub().Session(&context);
  beat.set_seq(5);
  ASSERT_TRUE(raw->Write(beat));
  while (raw->Read(&frame)) {
  }
  EXPECT_EQ(FromGrpc(raw->Finish()).code(), Code::kInvalidArgument);
}

TEST_F(EngineServiceTest, AHalfCloseEndsAllOfThatRouter) {
  RouterPeer router(server_->address());
  router.Connect();
  ASSERT_TRUE(router.Send(SubmitFrame(Ask(1, 3'900))));
  v1::SessionResponse frame;
  ASSERT_TRUE(router.Await(v1::SessionResponse::kTokens, frame));
  router.HalfClose();
  EXPECT_TRUE(router.Finish().ok());
  // The next router finds nothing running.
  RouterPeer next(server_->address());
  ASSERT_TRUE(next.Handshake(next.Hello(2)).ok());
  next.Open(next.info.session_token());
  ASSERT_TRUE(next.Await(
      [](const v1::SessionResponse& f) {
        return f.has_capacity() && f.capacity().running() == 0 && f.capacity().free_blocks() == 64;
      },
      frame));
}

TEST_F(EngineServiceTest, TheEndOfTheEpochReachesTheRouterAsItsLastFrame) {
  RouterPeer router(server_->address());
  router.Connect();
  v1::SessionResponse frame;
  ASSERT_TRUE(router.Await(v1::SessionResponse::kCapacity, frame));
  hub_.EndEpoch(
      {.reason = "rank_lost", .rank = 1, .last_good_step = 3, .message = "rank 1 is gone"});
  ASSERT_TRUE(router.Await(v1::SessionResponse::kEpochEnd, frame));
  EXPECT_EQ(frame.epoch_end().rank(), 1);
  EXPECT_EQ(frame.epoch_end().reason(), "rank_lost");
  EXPECT_EQ(router.Finish().reason(), "EPOCH_ENDED");
  hub_.AwaitEnds(std::chrono::steady_clock::now() + std::chrono::seconds(10));
}

TEST_F(EngineServiceTest, WhatIsNotBuiltSaysSo) {
  RouterPeer router(server_->address());
  grpc::ClientContext contexts[4];
  v1::GetCapacityResponse capacity;
  v1::EngineAbortResponse abort;
  v1::DrainResponse drain;
  v1::PutPromptResponse put;
  auto upload = router.stub().PutPrompt(&contexts[3], &put);
  upload->WritesDone();
  for (const grpc::Status& status :
       {router.stub().GetCapacity(&contexts[0], {}, &capacity),
        router.stub().Abort(&contexts[1], {}, &abort),
        router.stub().Drain(&contexts[2], {}, &drain), upload->Finish()}) {
    EXPECT_EQ(FromGrpc(status).code(), Code::kUnimplemented);
    EXPECT_EQ(FromGrpc(status).reason(), "UNSUPPORTED");
  }
}

}  // namespace
}  // namespace levin
