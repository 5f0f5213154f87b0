#include "worker/engine/engine.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

#include "tests/support/fake_clock.h"
#include "tests/worker/engine/local_group.h"

namespace levin {
namespace {

using std::chrono::milliseconds;
using testing::LocalGroup;
using testing::RecordingOutbox;

constexpr int32_t kVocab = 32;

SchedulerOptions Small() {
  SchedulerOptions options;
  options.max_num_seqs = 4;
  options.slots = 4;
  options.blocks = 16;
  options.tokens_per_step_max = 256;
  options.max_model_len = 2048;
  options.vocab_size = kVocab;
  options.epoch = 9;
  return options;
}

class EngineTest : public ::testing::Test {
 protected:
  void SetUp() override { Start(Small(), 2); }

  void Start(const SchedulerOptions& options, int ranks) {
    group_.emplace(options, ranks);
    engine_.emplace(EngineOptions{}, Scheduler(options), group_->rank(0).executor,
                    ranks > 1 ? &*group_ : nullptr, outbox_, inbox_, clock_);
  }

  static Generation Ask(uint64_t ordinal, int64_t prompt, int32_t max_new) {
    Generation generation;
    generation.ordinal = ordinal;
    generation.request_id = "request-" + std::to_string(ordinal);
    for (int64_t i = 0; i < prompt; ++i)
      generation.prompt.push_back(
          static_cast<TokenId>((i * 7 + static_cast<int64_t>(ordinal)) % kVocab));
    generation.max_new_tokens = max_new;
    generation.sampling.seed = ordinal;
    return generation;
  }

  template <typename What>
  void Send(What what, uint32_t router = 1) {
    ASSERT_TRUE(inbox_.TryPush({router, std::move(what)}));
  }
  void Submit(Generation generation, uint32_t router = 1) {
    Send(SubmitCommand{std::move(generation)}, router);
  }

  bool Round() {
    const Result<bool> stepped = engine_->Round();
    EXPECT_TRUE(stepped) << stepped.error().message();
    return stepped && *stepped;
  }
  void RunUntilIdle() {
    for (int i = 0; i < 10'000; ++i)
      if (!Round()) return;
    FAIL() << "never idle";
  }

  // "queued, admitted, 3 tokens, length"
  std::string Story(uint64_t ordinal, uint32_t router = 1) const {
    std::string story;
    int64_t tokens = 0;
    const auto say = [&](const std::string& word) { story += (story.empty() ? "" : ", ") + word; };
    for (const RouterEvent& event : outbox_.events) {
      if (event.router != router) continue;
      if (const auto* run = std::get_if<TokensEvent>(&event.what)) {
        if (run->ordinal == ordinal) tokens += static_cast<int64_t>(run->tokens.size());
        continue;
      }
      std::string word;
      if (const auto* accepted = std::get_if<AcceptedEvent>(&event.what);
          accepted && accepted->ordinal == ordinal)
        word = accepted->admitted ? "admitted" : "queued";
      if (const auto* finished = std::get_if<FinishedEvent>(&event.what);
          finished && finished->ordinal == ordinal)
        word = Name(finished->reason);
      if (const auto* error = std::get_if<ErrorEvent>(&event.what);
          error && error->ordinal == ordinal)
        word = error->status.reason();
      if (word.empty()) continue;
      if (tokens > 0) say(std::to_string(std::exchange(tokens, 0)) + " tokens");
      say(word);
    }
    if (tokens > 0) say(std::to_string(tokens) + " tokens");
    return story;
  }
  std::vector<TokenId> Tokens(uint64_t ordinal) const {
    std::vector<TokenId> ids;
    for (const RouterEvent& event : outbox_.events)
      if (const auto* run = std::get_if<TokensEvent>(&event.what); run && run->ordinal == ordinal) {
        EXPECT_EQ(run->first_index, static_cast<int64_t>(ids.size()));
        for (const SampledToken& token : run->tokens) ids.push_back(token.token);
      }
    return ids;
  }
  template <typename T>
  std::vector<T> All() const {
    std::vector<T> all;
    for (const RouterEvent& event : outbox_.events)
      if (const auto* one = std::get_if<T>(&event.what)) all.push_back(*one);
    return all;
  }

  static std::vector<TokenId> Alone(const Generation& generation) {
    Sampler sampler(kVocab, {});
    return testing::RunAlone(generation, sampler, kVocab).tokens;
  }

  FakeClock clock_;
  Mailbox<RouterCommand> inbox_{1024};
  RecordingOutbox outbox_;
  std::optional<LocalGroup> group_;
  std::optional<Engine> engine_;
};

TEST_F(EngineTest, RunsOneRequestAndGivesWhatItGivesAlone) {
  const Generation ask = Ask(1, 300, 20);
  Submit(ask);
  RunUntilIdle();
  EXPECT_EQ(Story(1), "queued, admitted, 20 tokens, length");
  EXPECT_EQ(Tokens(1), Alone(ask));
  EXPECT_EQ(engine_->progress().done, 22u);  // two chunks, 19 further tokens, the notice
}

TEST_F(EngineTest, SixteenAtOnceGetWhatEachGetsAlone) {
  std::vector<Generation> asks;
  for (uint64_t i = 1; i <= 16; ++i) {
    Generation ask = Ask(i, static_cast<int64_t>(i * 13), 10 + static_cast<int32_t>(i));
    if (i % 3 == 0) ask.sampling.temperature = 0;
    if (i % 4 == 0) ask.sampling.repetition_penalty = 1.5f;
    if (i % 5 == 0) ask.sampling.top_k = 4;
    asks.push_back(ask);
    Submit(ask);
  }
  RunUntilIdle();
  for (const Generation& ask : asks) EXPECT_EQ(Tokens(ask.ordinal), Alone(ask)) << ask.ordinal;
}

TEST_F(EngineTest, OneRankNeedsNoLink) {
  Start(Small(), 1);
  Submit(Ask(1, 5, 3));
  RunUntilIdle();
  EXPECT_EQ(Story(1), "queued, admitted, 3 tokens, length");
}

TEST_F(EngineTest, NoTokenLeavesWhenARankDisagreesAndTheRankIsNamed) {
  Start(Small(), 3);
  Submit(Ask(1, 5, 10));
  for (int i = 0; i < 3; ++i) Round();
  const size_t before = Tokens(1).size();
  group_->rank(2).model.before_run = [&](const StepBatch& batch) {
    group_->rank(2).model.PoisonBlock(batch.block_ids[0]);
    return Status::Ok();
  };
  const Result<bool> stepped = engine_->Round();
  ASSERT_FALSE(stepped);
  EXPECT_EQ(stepped.error().reason(), "DIGEST_MISMATCH");
  EXPECT_NE(stepped.error().message().find("rank 2"), std::string::npos);
  EXPECT_EQ(engine_->fault_rank(), 2);
  EXPECT_EQ(Tokens(1).size(), before);
}

TEST_F(EngineTest, AStepThatFailsEndsTheEpoch) {
  Submit(Ask(1, 5, 10));
  group_->rank(0).model.before_run = [](const StepBatch&) { return Internal("device gone"); };
  const Result<bool> stepped = engine_->Round();
  ASSERT_FALSE(stepped);
  EXPECT_NE(stepped.error().message().find("device gone"), std::string::npos);
}

TEST_F(EngineTest, ARepeatedSubmitGetsTheNewestAnswerAndNeverASecondRun) {
  const Generation ask = Ask(1, 5, 4);
  Submit(ask);
  Round();
  Submit(ask);
  RunUntilIdle();
  Submit(ask);
  Round();
  EXPECT_EQ(Story(1), "queued, admitted, 1 tokens, admitted, 3 tokens, length, length");
}

TEST_F(EngineTest, OtherContentUnderAKnownNameIsRefused) {
  Submit(Ask(1, 5, 50));
  Generation other = Ask(1, 5, 51);
  Submit(other);
  Generation same_id = Ask(2, 5, 50);
  same_id.request_id = "request-1";
  Submit(same_id);
  same_id.attempt = 0;
  same_id.ordinal = 3;
  Submit(same_id);
  Round();
  EXPECT_EQ(Story(1), "queued, GENERATION_EXISTS, admitted, 1 tokens");
  EXPECT_EQ(Story(2), "GENERATION_EXISTS");
  EXPECT_EQ(Story(3), "STALE_ATTEMPT");
}

TEST_F(EngineTest, AHigherAttemptRunsUnderANewOrdinal) {
  Submit(Ask(1, 5, 3));
  RunUntilIdle();
  Generation again = Ask(2, 5, 3);
  again.request_id = "request-1";
  again.attempt = 2;
  Submit(again);
  RunUntilIdle();
  EXPECT_EQ(Story(2), "queued, admitted, 3 tokens, length");
}

TEST_F(EngineTest, ARefusalCarriesTheNumbers) {
  Submit(Ask(1, 2000, 20));
  Round();
  const ErrorEvent error = All<ErrorEvent>().at(0);
  EXPECT_EQ(error.status.reason(), "CACHE_NEVER_FITS");
  EXPECT_EQ(error.need_blocks, 32);
  EXPECT_EQ(error.free_blocks, 16);
  EXPECT_EQ(error.total_blocks, 16);
  Generation hostile = Ask(2, 5, -7);
  Submit(hostile);
  Round();
  EXPECT_EQ(Story(2), "INVALID_FIELD");
}

TEST_F(EngineTest, ACancelGivesTheMemoryBackWithinTwoSteps) {  // C35
  Submit(Ask(1, 5, 500));
  Round();
  Round();
  Send(CancelCommand{.ordinal = 1, .attempt = 1, .why = FinishReason::kCancelled});
  const uint64_t step = engine_->progress().done;
  RunUntilIdle();
  EXPECT_EQ(Story(1), "queued, admitted, 2 tokens, cancelled");
  EXPECT_LE(engine_->progress().done, step + 2);
  EXPECT_EQ(engine_->scheduler().capacity().free_slots, 4);
}

TEST_F(EngineTest, ACancelOfAnotherAttemptIsTooLate) {
  Submit(Ask(1, 5, 3));
  Send(CancelCommand{.ordinal = 1, .attempt = 7});
  RunUntilIdle();
  EXPECT_EQ(Story(1), "queued, admitted, 3 tokens, length");
}

TEST_F(EngineTest, ACancelThatOvertakesItsSubmitIsRememberedForOneLease) {
  Send(CancelCommand{.ordinal = 5, .attempt = 1});
  Send(CancelCommand{.ordinal = 6, .attempt = 1});
  Round();
  Submit(Ask(5, 5, 3));
  Round();
  EXPECT_EQ(Story(5), "queued, cancelled");
  clock_.Advance(milliseconds(10'001));
  Submit(Ask(6, 5, 3));
  RunUntilIdle();
  EXPECT_EQ(Story(6), "queued, admitted, 3 tokens, length");
}

TEST_F(EngineTest, WhatTheRouterDoesNotListIsFreedAndAcknowledgedAfterTheStep) {
  for (uint64_t i = 1; i <= 3; ++i) Submit(Ask(i, 5, 500));
  Round();
  Send(FinishedSetCommand{.watermark = 3, .live = {2}});
  Round();
  EXPECT_EQ(Story(1), "queued, admitted, 1 tokens, cancelled");
  const FreedAckEvent ack = All<FreedAckEvent>().at(0);
  EXPECT_EQ(ack.watermark, 3u);
  EXPECT_EQ(ack.unfreed, (std::vector<uint64_t>{2}));
  EXPECT_EQ(ack.step, 2u);
  EXPECT_EQ(engine_->scheduler().capacity().free_slots, 3);
}

TEST_F(EngineTest, AFinishedSetIsALevelThatMayBeRepeated) {
  Submit(Ask(1, 5, 2));
  RunUntilIdle();
  for (int i = 0; i < 3; ++i) {
    Send(FinishedSetCommand{.watermark = 1, .live = {}});
    Round();
  }
  ASSERT_EQ(All<FreedAckEvent>().size(), 3u);
  for (const FreedAckEvent& ack : All<FreedAckEvent>()) EXPECT_TRUE(ack.unfreed.empty());
  Submit(Ask(1, 5, 2));  // after it was named finished
  Round();
  EXPECT_EQ(Story(1), "queued, admitted, 2 tokens, length, CANCELLED");
}

TEST_F(EngineTest, ARouterThatIsGoneTakesItsGenerationsWithItAndNobodyElses) {
  Submit(Ask(1, 5, 500), 1);
  Submit(Ask(1, 5, 9), 2);
  Round();
  Send(RouterGone{}, 1);
  RunUntilIdle();
  EXPECT_EQ(Story(1, 1), "queued, admitted, 1 tokens");  // nobody listens
  EXPECT_EQ(Story(1, 2), "queued, admitted, 9 tokens, length");
  EXPECT_EQ(engine_->scheduler().capacity().free_slots, 4);
}

TEST_F(EngineTest, DeadlinesAreWallClockTimes) {
  Generation ask = Ask(1, 5, 500);
  ask.deadline_unix_ms = clock_.UnixMs() + 5;
  Generation endless = Ask(2, 5, 20);
  endless.deadline_unix_ms = INT64_MAX;
  Generation expired = Ask(3, 5, 20);
  expired.deadline_unix_ms = 1;
  Submit(ask);
  Submit(endless);
  Submit(expired);
  Round();
  clock_.Advance(milliseconds(5));
  RunUntilIdle();
  EXPECT_EQ(Story(1), "queued, admitted, 1 tokens, deadline");
  EXPECT_EQ(Story(2), "queued, admitted, 20 tokens, length");
  EXPECT_EQ(Story(3), "queued, deadline");
}

TEST_F(EngineTest, RememberedGenerationsAreBounded) {
  engine_.emplace(EngineOptions{.records_per_router_max = 2}, Scheduler(Small()),
                  group_->rank(0).executor, &*group_, outbox_, inbox_, clock_);
  for (uint64_t i = 1; i <= 3; ++i) Submit(Ask(i, 5, 2));
  RunUntilIdle();
  EXPECT_EQ(Story(3), "QUEUE_FULL");
  Send(FinishedSetCommand{.watermark = 3, .live = {}});
  Submit(Ask(4, 5, 2));
  RunUntilIdle();
  EXPECT_EQ(Story(4), "queued, admitted, 2 tokens, length");
}

TEST_F(EngineTest, RunEndsWhenTheInboxIsClosedAndEverythingEnded) {
  Submit(Ask(1, 5, 30));
  inbox_.Close();
  EXPECT_TRUE(engine_->Run().ok());
  EXPECT_EQ(Story(1), "queued, admitted, 30 tokens, length");
  ASSERT_TRUE(outbox_.capacity);
  EXPECT_EQ(outbox_.capacity->free_slots, 4);
  EXPECT_TRUE(outbox_.capacity->draining);
  EXPECT_FALSE(engine_->progress().has_work);
}

TEST_F(EngineTest, FourTimesAsManyAsSlotsAtOnceAllFinish) {  // B02
  for (uint64_t i = 1; i <= 16; ++i) Submit(Ask(i, 20, 5));
  RunUntilIdle();
  for (uint64_t i = 1; i <= 16; ++i) EXPECT_EQ(Story(i), "queued, admitted, 5 tokens, length");
}

TEST_F(EngineTest, StartAllSlotsCancelAllTenRounds) {  // A01
  uint64_t ordinal = 0;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 4; ++i) Submit(Ask(++ordinal, 20, 200));  // 4 of 16 blocks each
    Round();
    EXPECT_EQ(engine_->scheduler().capacity().free_slots, 0);
    Send(FinishedSetCommand{.watermark = ordinal, .live = {}});
    Round();
    EXPECT_EQ(engine_->scheduler().capacity().free_slots, 4);
    EXPECT_EQ(engine_->scheduler().capacity().free_blocks, 16);
    EXPECT_EQ(group_->rank(1).executor.table().size(), 0u);
    EXPECT_FALSE(Round());
  }
  Submit(Ask(++ordinal, 20, 3));
  RunUntilIdle();
  EXPECT_EQ(Story(ordinal), "queued, admitted, 3 tokens, length");
}

TEST_F(EngineTest, ALiveRequestInSlotZeroIsUntouchedByWhateverBatchesRunBesideIt) {  // B21
  SchedulerOptions options = Small();
  options.slots = options.max_num_seqs = 8;
  options.blocks = 64;
  Start(options, 2);
  const Generation holder = Ask(1, 30, 200);
  Submit(holder);
  Round();
  EXPECT_EQ(group_->plans[0].started[0].state_slot, 0);
  uint64_t ordinal = 1;
  for (int others : {2, 4, 5, 6, 3, 7}) {
    for (int i = 0; i < others; ++i) Submit(Ask(++ordinal, 10 + i, 12));
    for (int i = 0; i < 20; ++i) Round();
  }
  RunUntilIdle();
  EXPECT_EQ(Tokens(1), Alone(holder));
}

TEST_F(EngineTest, ASeededRequestIsTheSameWithAnyNeighbours) {  // C44
  Generation seeded = Ask(100, 12, 15);
  seeded.sampling.seed = 4242;
  const std::vector<TokenId> alone = Alone(seeded);
  uint64_t ordinal = 1000;
  for (int neighbours = 0; neighbours <= 3; ++neighbours) {
    for (int place = 0; place <= neighbours; ++place) {
      Start(Small(), 2);
      outbox_.events.clear();
      for (int i = 0; i <= neighbours; ++i) {
        if (i == place) {
          Submit(seeded);
          continue;
        }
        Generation other = Ask(++ordinal, 7, 20);
        other.sampling.temperature = i % 2 == 0 ? 0.0f : 1.3f;
        Submit(other);
      }
      RunUntilIdle();
      EXPECT_EQ(Tokens(100), alone) << neighbours << " neighbours, place " << place;
    }
  }
}

}  // namespace
}  // namespace levin
