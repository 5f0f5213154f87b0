#include "worker/schedule/scheduler.h"

#include "tests/worker/schedule/scheduler_fixture.h"

namespace levin {
namespace {

using std::chrono::milliseconds;

class SchedulerTest : public SchedulerFixture {
 protected:
  void SetUp() override { Start(Small()); }
};

TEST_F(SchedulerTest, RunsOneRequestFromPromptToLimitAndGivesItsMemoryBack) {
  ASSERT_TRUE(Add(1, Ask(10, 3)).ok());
  const BatchPlan first = *Step();
  EXPECT_EQ(first.epoch, 9u);
  EXPECT_EQ(first.step, 1u);
  ASSERT_EQ(first.started.size(), 1u);
  EXPECT_EQ(first.started[0].blocks.count, 1);
  EXPECT_EQ(first.rows, (std::vector<PlanRow>{{.sequence = first.started[0].sequence,
                                               .position = 0,
                                               .tokens = {0, 10},
                                               .fresh = true,
                                               .stepwise = false,
                                               .draws = 1}}));
  const BatchPlan second = *Step();
  EXPECT_EQ(second.rows, (std::vector<PlanRow>{{.sequence = first.started[0].sequence,
                                                .position = 10,
                                                .tokens = {},
                                                .fresh = false,
                                                .stepwise = true,
                                                .draws = 1}}));
  EXPECT_EQ(Step()->rows[0].position, 11);
  EXPECT_EQ(scheduler_->capacity().free_slots, 3);
  const BatchPlan last = *Step();  // nothing to run: the notice goes out all the same
  EXPECT_TRUE(last.rows.empty());
  EXPECT_EQ(last.finished, (std::vector<SequenceId>{first.started[0].sequence}));
  EXPECT_FALSE(Step());
  EXPECT_EQ(Story(1), "admitted, token, token, token, length, freed");
  EXPECT_EQ(scheduler_->capacity().free_slots, 4);
  EXPECT_EQ(scheduler_->capacity().free_blocks, 16);
  EXPECT_TRUE(scheduler_->idle());
}

TEST_F(SchedulerTest, CountsWhatWasUsed) {
  now_ += milliseconds(5);
  ASSERT_TRUE(Add(1, Ask(300, 2)).ok());  // two chunks: the second draws
  RunToTheEnd();
  const Ended ended = All<Ended>(1).at(0);
  EXPECT_EQ(ended.usage.prompt_tokens, 300);
  EXPECT_EQ(ended.usage.output_tokens, 2);
  EXPECT_EQ(ended.usage.queue_us, 1000);
  EXPECT_EQ(ended.usage.prefill_us, 1000);
  EXPECT_EQ(ended.usage.decode_us, 1000);
  EXPECT_EQ(ended.ids_hash, 0xd676b615805b6410u);  // XXH3-64 of 07000000 07000000
  EXPECT_EQ(All<TokenDrawn>(1).at(0).index, 0);
  EXPECT_EQ(All<TokenDrawn>(1).at(1).index, 1);
}

TEST_F(SchedulerTest, AStopIdEndsAndIsCounted) {
  ASSERT_TRUE(Add(1, Ask(10, 50)).ok());
  Step();
  Step([](SequenceId) { return RowSample{.token = {.token = kStopId}}; });
  RunToTheEnd();
  EXPECT_EQ(Story(1), "admitted, token, token, stop, freed");
  EXPECT_EQ(All<Ended>(1).at(0).usage.output_tokens, 2);
}

TEST_F(SchedulerTest, ZeroNewTokensEndWithLengthAfterTheLastChunkAndDrawNothing) {
  ASSERT_TRUE(Add(1, Ask(300, 0)).ok());
  EXPECT_EQ(Step()->rows[0].draws, 0);
  EXPECT_EQ(Step()->rows[0].draws, 0);
  RunToTheEnd();
  EXPECT_EQ(Story(1), "admitted, length, freed");
  EXPECT_EQ(All<Ended>(1).at(0).ids_hash, 0x2d06800538d394c2u);  // XXH3-64 of nothing
}

TEST_F(SchedulerTest, DecodeRowsComeFirstAndPromptsShareWhatIsLeft) {
  SchedulerOptions options = Small();
  options.tokens_per_step_max = 130;
  options.blocks = 100;
  Start(options);
  ASSERT_TRUE(Add(1, Ask(10, 20)).ok());
  Step();
  ASSERT_TRUE(Add(2, Ask(200, 5)).ok());
  ASSERT_TRUE(Add(3, Ask(20, 5)).ok());
  const BatchPlan plan = *Step();
  ASSERT_EQ(plan.rows.size(), 2u);  // 1 + 128; no room for the third
  EXPECT_TRUE(plan.rows[0].stepwise);
  EXPECT_EQ(plan.rows[1].tokens.count, 128);
  const BatchPlan next = *Step();
  ASSERT_EQ(next.rows.size(), 3u);
  EXPECT_EQ(next.rows[1].position, 128);
  EXPECT_EQ(next.rows[1].tokens.count, 72);
  EXPECT_EQ(next.rows[1].draws, 1);
  EXPECT_EQ(next.rows[2].tokens.count, 20);
  EXPECT_TRUE(next.rows[2].fresh);
}

TEST_F(SchedulerTest, ChunksEndOnMultiplesOf64OrWithThePromptAndStayInTheBudget) {
  SchedulerOptions options = Small();
  options.tokens_per_step_max = 200;
  options.blocks = 200;
  Start(options);
  for (uint64_t i = 1; i <= 4; ++i)
    ASSERT_TRUE(Add(i, Ask(250 + 100 * static_cast<int64_t>(i), 9)).ok());
  while (std::optional<BatchPlan> plan = Step()) {
    int64_t tokens = 0;
    for (const PlanRow& row : plan->rows) {
      tokens += std::max(row.tokens.count, 1);
      if (!row.stepwise && row.draws == 0) {
        EXPECT_EQ((row.position + row.tokens.count) % 64, 0);
      }
    }
    EXPECT_LE(tokens, 200);
  }
  for (uint64_t i = 1; i <= 4; ++i) EXPECT_EQ(All<Ended>(i).at(0).reason, FinishReason::kLength);
}

TEST_F(SchedulerTest, APromptOfTenMillionTokensIsLaidOutToItsEnd) {
  constexpr int64_t kTokens = 10'240'000, kStep = 1 << 20;
  SchedulerOptions options = Small();
  options.max_model_len = kTokens;
  options.tokens_per_step_max = kStep;
  options.blocks = kTokens / options.block_tokens;
  Start(options);
  EXPECT_EQ(Add(1, Ask(kTokens, 1)).reason(), "CONTEXT_LENGTH_EXCEEDED");
  ASSERT_TRUE(Add(2, Ask(kTokens - 1, 1)).ok());
  int64_t position = 0, pairs = 0;
  while (std::optional<BatchPlan> plan = Step()) {
    ASSERT_EQ(plan->rows.size(), 1u);
    EXPECT_EQ(plan->rows[0].position, position);
    position += plan->rows[0].tokens.count;
    if (plan->rows[0].draws > 0) break;
    EXPECT_GT(AttendedPairs(*plan), pairs) << "later chunks look back further";
    pairs = AttendedPairs(*plan);
  }
  EXPECT_EQ(position, kTokens - 1);
  EXPECT_EQ(pairs, kStep * 9 * kStep) << "of the ninth chunk";
}

TEST_F(SchedulerTest, ATinyBudgetIsRaisedSoThatPromptsProgressBesideFullDecode) {
  SchedulerOptions options = Small();
  options.tokens_per_step_max = 1;
  options.blocks = 60;
  Start(options);
  for (uint64_t i = 1; i <= 3; ++i) ASSERT_TRUE(Add(i, Ask(5, 200)).ok());
  for (int i = 0; i < 4; ++i) Step();
  ASSERT_TRUE(Add(4, Ask(640, 1)).ok());
  for (int i = 0; i < 10; ++i) {
    const BatchPlan plan = *Step();
    ASSERT_EQ(plan.rows.size(), 4u);
    EXPECT_EQ(plan.rows[3].tokens.count, 64);
  }
  EXPECT_EQ(Story(4), "admitted, token, length");
}

TEST_F(SchedulerTest, APromptOfOneTokenIsAFreshChunkNotADecodeRow) {  // B07
  ASSERT_TRUE(Add(1, Ask(1, 2)).ok());
  const BatchPlan plan = *Step();
  EXPECT_TRUE(plan.rows[0].fresh);
  EXPECT_FALSE(plan.rows[0].stepwise);
  EXPECT_EQ(plan.rows[0].tokens.count, 1);
  EXPECT_FALSE(Step()->rows[0].fresh);
}

TEST_F(SchedulerTest, EvalFeedsChunksOfExactlyKAndOneByOneInTheOneTokenForm) {
  SchedulerOptions options = Small();
  options.chunk_tokens = 7;
  Start(options);
  ASSERT_TRUE(Add(1, Ask(16, 1)).ok());
  EXPECT_EQ(Step()->rows[0].tokens.count, 7);
  EXPECT_EQ(Step()->rows[0].tokens.count, 7);
  EXPECT_EQ(Step()->rows[0].tokens.count, 2);
  options.chunk_tokens = 1;
  options.stepwise_prompt = true;
  Start(options);
  ASSERT_TRUE(Add(1, Ask(3, 1)).ok());
  for (int i = 0; i < 3; ++i) {
    const PlanRow row = Step()->rows[0];
    EXPECT_EQ(row.tokens.count, 1);
    EXPECT_TRUE(row.stepwise);
    EXPECT_EQ(row.fresh, i == 0);
  }
}

TEST_F(SchedulerTest, AdmitsTheNextRequestInTheStepInWhichOneIsReleased) {  // B01
  SchedulerOptions options = Small();
  options.slots = 1;
  Start(options);
  ASSERT_TRUE(Add(1, Ask(10, 1)).ok());
  ASSERT_TRUE(Add(2, Ask(10, 1)).ok());
  const BatchPlan first = *Step();
  const BatchPlan second = *Step();
  EXPECT_EQ(second.finished, (std::vector<SequenceId>{first.started[0].sequence}));
  ASSERT_EQ(second.started.size(), 1u);
  EXPECT_EQ(second.started[0].state_slot, first.started[0].state_slot);
  EXPECT_NE(second.started[0].sequence, first.started[0].sequence);
}

TEST_F(SchedulerTest, NeverRunsMoreThanSlotsOrTheSequenceLimit) {  // B02
  for (int32_t limit : {2, 100}) {
    SchedulerOptions options = Small();
    options.max_num_seqs = limit;
    Start(options);
    const size_t most = limit == 2 ? 2 : 4;
    for (uint64_t i = 1; i <= 16; ++i) ASSERT_TRUE(Add(i, Ask(10, 3)).ok());
    while (std::optional<BatchPlan> plan = Step()) EXPECT_LE(plan->rows.size(), most);
    for (uint64_t i = 1; i <= 16; ++i)
      EXPECT_EQ(Story(i).substr(Story(i).rfind("token")), "token, length, freed");
    emissions_.clear();
  }
}

TEST_F(SchedulerTest, StartsAllSlotsAndCancelsAllTenTimesAndNothingStays) {  // A01
  for (uint64_t round = 0; round < 10; ++round) {
    for (uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(Add(round * 4 + i, Ask(10, 100)).ok());
    Step();
    Step();
    EXPECT_EQ(scheduler_->capacity().free_slots, 0);
    for (uint64_t i = 0; i < 4; ++i) Cancel(round * 4 + i);
    const std::optional<BatchPlan> notice = Step();
    ASSERT_TRUE(notice);
    EXPECT_EQ(notice->finished.size(), 4u);
    EXPECT_EQ(scheduler_->capacity().free_slots, 4);
    EXPECT_EQ(scheduler_->capacity().free_blocks, 16);
    EXPECT_FALSE(Step());
  }
  ASSERT_TRUE(Add(99, Ask(10, 1)).ok());
  RunToTheEnd();
  EXPECT_EQ(Story(99), "admitted, token, length, freed");
}

TEST_F(SchedulerTest, CancelEndsAWaiterAtOnceAndARunnerWithTheNextPlan) {
  for (uint64_t i = 1; i <= 5; ++i) ASSERT_TRUE(Add(i, Ask(10, 100)).ok());
  Step();
  Cancel(5);
  EXPECT_EQ(Story(5), "cancelled, freed");
  Cancel(1);
  EXPECT_EQ(Story(1), "admitted, token, cancelled");
  Cancel(1);
  Cancel(77);
  Step();
  EXPECT_EQ(Story(1), "admitted, token, cancelled, freed");
}

TEST_F(SchedulerTest, ACancelWhileTheStepRunsDropsItsToken) {
  ASSERT_TRUE(Add(1, Ask(10, 100)).ok());
  Step();
  const BatchPlan plan = *scheduler_->Next(now_);
  scheduler_->Cancel({0, 1}, FinishReason::kCancelled, now_);
  scheduler_->Complete(
      {.step = plan.step, .samples = {{.sequence = plan.rows[0].sequence, .token = {.token = 5}}}},
      now_);
  RunToTheEnd();
  EXPECT_EQ(Story(1), "admitted, token, cancelled, freed");
}

TEST_F(SchedulerTest, DeadlinesDropWaitersBeforeTheyCostAStepAndEndRunners) {
  for (uint64_t i = 1; i <= 4; ++i)
    ASSERT_TRUE(
        Add(i, Ask(10, 100), i == 2 ? now_ + milliseconds(3) : Scheduler::kNoDeadline).ok());
  ASSERT_TRUE(Add(5, Ask(10, 100), now_ + milliseconds(2)).ok());
  Step();
  Step();
  EXPECT_EQ(Story(5), "deadline, freed");
  Step();
  EXPECT_EQ(Story(2), "admitted, token, token, deadline, freed");
  EXPECT_EQ(Story(1), "admitted, token, token, token");
}

TEST_F(SchedulerTest, NumbersThatAreNoneEndThatGenerationAndNoOther) {
  ASSERT_TRUE(Add(1, Ask(10, 3)).ok());
  ASSERT_TRUE(Add(2, Ask(10, 3)).ok());
  const SequenceId first = Step()->started[0].sequence;
  Step([&](SequenceId id) { return RowSample{.numeric_fault = id == first}; });
  RunToTheEnd();
  EXPECT_EQ(Story(1), "admitted, token, NUMERIC_FAULT, freed");
  EXPECT_EQ(Story(2), "admitted, token, token, token, length, freed");
}

TEST_F(SchedulerTest, SendsTheDistinctPromptIdsOnlyWhereAPenaltyCountsThem) {
  Generation plain = Ask(10, 1);
  Generation penalised = Ask(4, 1);
  penalised.prompt = {9, 3, 9, 3};
  penalised.sampling.repetition_penalty = 1.2f;
  ASSERT_TRUE(Add(1, plain).ok());
  ASSERT_TRUE(Add(2, penalised).ok());
  const BatchPlan plan = *Step();
  EXPECT_EQ(plan.started[0].counted.count, 0);
  const Range counted = plan.started[1].counted;
  ASSERT_EQ(counted.count, 2);
  EXPECT_EQ(plan.tokens[static_cast<size_t>(counted.first)], 3);
  EXPECT_EQ(plan.tokens[static_cast<size_t>(counted.first) + 1], 9);
}

TEST_F(SchedulerTest, RefusesWhatCanNeverRunWithTheNumbers) {
  const Status model = Add(1, Ask(2000, 49));
  EXPECT_EQ(model.code(), Code::kInvalidArgument);
  EXPECT_EQ(model.reason(), "CONTEXT_LENGTH_EXCEEDED");
  EXPECT_NE(model.message().find("2049"), std::string::npos);
  const Status pool = Add(1, Ask(1000, 25));  // 17 of 16 blocks
  EXPECT_EQ(pool.code(), Code::kInvalidArgument);
  EXPECT_EQ(pool.reason(), "CACHE_NEVER_FITS");
  EXPECT_NE(pool.message().find("17"), std::string::npos);
  EXPECT_TRUE(Add(1, Ask(1000, 24)).ok());
  EXPECT_EQ(Add(2, Ask(0, 5)).reason(), "INVALID_FIELD");
  EXPECT_EQ(Add(2, Ask(5, -1)).param(), "max_new_tokens");
  Generation stranger = Ask(5, 5);
  stranger.prompt[3] = 1000;
  EXPECT_EQ(Add(2, stranger).param(), "prompt");
  Generation sampling = Ask(5, 5);
  sampling.sampling.top_p = 2;
  EXPECT_EQ(Add(2, sampling).param(), "top_p");
}

TEST_F(SchedulerTest, AFullWaitingListSaysLater) {
  SchedulerOptions options = Small();
  options.waiting_max = 2;
  Start(options);
  EXPECT_EQ(scheduler_->capacity().submit_window, 2);
  ASSERT_TRUE(Add(1, Ask(5, 5)).ok());
  ASSERT_TRUE(Add(2, Ask(5, 5)).ok());
  const Status full = Add(3, Ask(5, 5));
  EXPECT_EQ(full.code(), Code::kResourceExhausted);
  EXPECT_EQ(full.reason(), "QUEUE_FULL");
  EXPECT_GT(full.retry_after_ms(), 0);
  EXPECT_EQ(scheduler_->capacity().submit_window, 0);
  Cancel(1);  // frees its place at once
  EXPECT_TRUE(Add(3, Ask(5, 5)).ok());
}

TEST_F(SchedulerTest, SaysWhatIsUsedAndWhatIsLeft) {
  ASSERT_TRUE(Add(1, Ask(300, 20)).ok());
  Step();
  ASSERT_TRUE(Add(2, Ask(40, 20)).ok());
  const Capacity capacity = scheduler_->capacity();
  EXPECT_EQ(capacity.total_blocks, 16);
  EXPECT_EQ(capacity.reserved_blocks, 5);
  EXPECT_EQ(capacity.free_blocks, 11);
  EXPECT_EQ(capacity.total_slots, 4);
  EXPECT_EQ(capacity.free_slots, 3);
  EXPECT_EQ(capacity.running, 1);
  EXPECT_EQ(capacity.waiting, 1);
  EXPECT_EQ(capacity.prefill_backlog_tokens, 300 - 256 + 40);
  EXPECT_EQ(capacity.step, 1);
}

}  // namespace
}  // namespace levin
