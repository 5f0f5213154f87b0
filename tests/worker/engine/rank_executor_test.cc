// Plans come over a wire: whatever they say, a rank answers with a Status and keeps its memory
// whole.
#include "worker/engine/rank_executor.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/support/scripted_model.h"
#include "tests/worker/engine/local_group.h"
#include "worker/plan/plan_codec.h"

namespace levin {
namespace {

using testing::ScriptedModel;

constexpr PlanLimits kLimits = {.epoch = 5,
                                .slots = 2,
                                .blocks = 8,
                                .block_tokens = 4,
                                .rows_max = 2,
                                .tokens_max = 12,
                                .vocab_size = 32};

// Sequence 1 with a prompt of six in two blocks of slot 1: a plan that every rank takes.
BatchPlan GoodPlan() {
  BatchPlan plan;
  plan.epoch = 5;
  plan.step = 1;
  plan.tokens = {1, 2, 3, 4, 5, 6};
  plan.blocks = {7, 3};
  plan.started = {
      {.sequence = 1, .state_slot = 1, .blocks = {0, 2}, .sampling = {}, .counted = {}}};
  plan.rows = {{.sequence = 1, .position = 0, .tokens = {0, 6}, .fresh = true, .draws = 1}};
  return plan;
}

BatchPlan DecodePlanOf(uint64_t step, int64_t position) {
  BatchPlan plan;
  plan.epoch = 5;
  plan.step = step;
  plan.rows = {{.sequence = 1, .position = position, .tokens = {}, .stepwise = true, .draws = 1}};
  return plan;
}

class RankExecutorTest : public ::testing::Test {
 protected:
  RankExecutorTest() { Restart(); }

  void Restart() {
    model_.emplace(kLimits.slots, kLimits.blocks, kLimits.block_tokens, kLimits.vocab_size);
    executor_.emplace(kLimits, *model_, std::vector<bool>());
  }
  Result<StepResult> Execute(const BatchPlan& plan) { return executor_->Execute(EncodePlan(plan)); }

  std::string Refused(const BatchPlan& plan, Code code = Code::kInvalidArgument) {
    const Result<StepResult> result = Execute(plan);
    if (result) return "accepted";
    EXPECT_EQ(result.error().code(), code) << result.error().message();
    return result.error().message();
  }
  // What a fresh rank says to GoodPlan with a change.
  std::string RefusedWith(const std::function<void(BatchPlan&)>& change) {
    Restart();
    BatchPlan plan = GoodPlan();
    change(plan);
    return Refused(plan);
  }

  std::optional<ScriptedModel> model_;
  std::optional<RankExecutor> executor_;
};

using ::testing::Test;

TEST_F(RankExecutorTest, ResolvesAPlanAndRemembersWhatItDrew) {
  const Result<StepResult> first = Execute(GoodPlan());
  ASSERT_TRUE(first) << first.error().message();
  ASSERT_EQ(first->samples.size(), 1u);
  StepBatch seen;
  model_->before_run = [&](const StepBatch& batch) {
    seen = batch;
    return Status::Ok();
  };
  ASSERT_TRUE(Execute(DecodePlanOf(2, 6)));
  EXPECT_EQ(seen.tokens, (std::vector<TokenId>{first->samples[0].token.token}));
  EXPECT_EQ(seen.row_slot, (std::vector<int32_t>{1}));
  EXPECT_EQ(seen.row_position, (std::vector<int64_t>{6}));
  EXPECT_EQ(seen.row_fresh, (std::vector<uint8_t>{0}));
  EXPECT_EQ(seen.row_stepwise, (std::vector<uint8_t>{1}));
  EXPECT_EQ(seen.block_ids, (std::vector<int32_t>{7, 3}));
  EXPECT_EQ(seen.logit_tokens, (std::vector<int32_t>{0}));
}

TEST_F(RankExecutorTest, NamesOnlyTheBlocksThatARowReaches) {
  BatchPlan plan = GoodPlan();
  plan.rows[0].tokens = {0, 4};
  plan.rows[0].draws = 0;
  StepBatch seen;
  model_->before_run = [&](const StepBatch& batch) {
    seen = batch;
    return Status::Ok();
  };
  ASSERT_TRUE(Execute(plan));
  EXPECT_EQ(seen.block_ids, (std::vector<int32_t>{7}));
  EXPECT_TRUE(seen.logit_tokens.empty());
}

TEST_F(RankExecutorTest, EqualPlansGiveEqualDigestsAndADrawChangesThem) {
  const uint64_t first = Execute(GoodPlan())->digest;
  Restart();
  EXPECT_EQ(Execute(GoodPlan())->digest, first);
  Restart();
  model_->before_run = [&](const StepBatch&) {
    model_->PoisonBlock(3);
    return Status::Ok();
  };
  ASSERT_EQ(Execute(GoodPlan())->digest, first);  // the row writes it again
  model_->before_run = [&](const StepBatch&) {
    model_->PoisonBlock(7);
    return Status::Ok();
  };
  const StepResult poisoned = *Execute(DecodePlanOf(2, 6));
  EXPECT_TRUE(poisoned.samples[0].numeric_fault);
  Restart();
  ASSERT_TRUE(Execute(GoodPlan()));
  const StepResult good = *Execute(DecodePlanOf(2, 6));
  EXPECT_FALSE(good.samples[0].numeric_fault);
  EXPECT_NE(good.digest, poisoned.digest);
}

TEST_F(RankExecutorTest, APlanWithoutRowsFreesAndRunsNothing) {
  ASSERT_TRUE(Execute(GoodPlan()));
  BatchPlan notice;
  notice.epoch = 5;
  notice.step = 2;
  notice.finished = {1};
  const int64_t rows = model_->rows_run();
  ASSERT_TRUE(Execute(notice));
  EXPECT_EQ(model_->rows_run(), rows);
  EXPECT_EQ(executor_->table().size(), 0u);
}

TEST_F(RankExecutorTest, MemoryChangesItsOwnerWithinOnePlan) {
  ASSERT_TRUE(Execute(GoodPlan()));
  BatchPlan plan = GoodPlan();
  plan.step = 2;
  plan.finished = {1};
  plan.started[0].sequence = plan.rows[0].sequence = 2;
  EXPECT_TRUE(Execute(plan));
}

TEST_F(RankExecutorTest, RefusesPlansOfAnotherEpochOrOutOfOrder) {
  BatchPlan plan = GoodPlan();
  plan.epoch = 4;
  EXPECT_NE(Refused(plan, Code::kFailedPrecondition).find("epoch 4, expected 5"),
            std::string::npos);
  plan.epoch = 5;
  plan.step = 2;
  EXPECT_NE(Refused(plan, Code::kFailedPrecondition).find("step 2, expected 1"), std::string::npos);
}

TEST_F(RankExecutorTest, RefusesWhatContradictsItsTableOrItsLimits) {
  const std::string accepted = "accepted";
  EXPECT_EQ(RefusedWith([](BatchPlan&) {}), accepted);
  const std::vector<std::function<void(BatchPlan&)>> wrong = {
      [](BatchPlan& p) { p.finished = {7}; },
      [](BatchPlan& p) { p.started[0].sequence = 0; },
      [](BatchPlan& p) { p.started[0].state_slot = 2; },
      [](BatchPlan& p) { p.started[0].state_slot = -1; },
      [](BatchPlan& p) { p.blocks[1] = 8; },
      [](BatchPlan& p) { p.blocks[1] = -3; },
      [](BatchPlan& p) { p.blocks[1] = 7; },
      [](BatchPlan& p) { p.started.push_back(p.started[0]); },
      [](BatchPlan& p) {
        p.started.push_back(p.started[0]);
        p.started[1].sequence = 2;  // the same slot
      },
      [](BatchPlan& p) { p.started[0].sampling.temperature = -1; },
      [](BatchPlan& p) { p.started[0].sampling.stop_ids = {32}; },
      [](BatchPlan& p) {
        p.started[0].counted = {0, 6}, p.tokens[0] = 2;
      },  // not ascending
      [](BatchPlan& p) { p.rows[0].sequence = 2; },
      [](BatchPlan& p) { p.rows[0].position = 1; },
      [](BatchPlan& p) { p.rows[0].fresh = false; },
      [](BatchPlan& p) { p.rows[0].draws = 2; },
      [](BatchPlan& p) { p.rows[0].tokens = {}; },  // nothing was drawn yet
      [](BatchPlan& p) { p.tokens[3] = 32; },
      [](BatchPlan& p) { p.tokens[3] = -1; },
      [](BatchPlan& p) {
        p.started[0].blocks = {0, 1};
      },  // six tokens do not fit into one block
      [](BatchPlan& p) {
        p.rows[0].tokens = {0, 3};
        p.rows.push_back({.sequence = 1, .position = 3, .tokens = {3, 3}, .draws = 1});
      },
      [](BatchPlan& p) {
        p.blocks = {0, 1, 2, 3};
        p.started[0].blocks = {0, 4};
        p.tokens.assign(13, 1);
        p.rows[0].tokens = {0, 13};
      },
      [](BatchPlan& p) { p.rows.assign(3, p.rows[0]); },
  };
  for (size_t i = 0; i < wrong.size(); ++i) EXPECT_NE(RefusedWith(wrong[i]), accepted) << i;
}

TEST_F(RankExecutorTest, ARowMayNotNameTokensOnceOneWasDrawn) {
  ASSERT_TRUE(Execute(GoodPlan()));
  BatchPlan plan = DecodePlanOf(2, 6);
  plan.tokens = {4};
  plan.rows[0].tokens = {0, 1};
  EXPECT_NE(Refused(plan), "accepted");
}

TEST_F(RankExecutorTest, IdsAreNeverUsedTwice) {
  ASSERT_TRUE(Execute(GoodPlan()));
  BatchPlan plan = GoodPlan();
  plan.step = 2;
  plan.finished = {1};
  EXPECT_NE(Refused(plan).find("ids rise"), std::string::npos);
}

// Real plans with random bytes changed, on ranks that are somewhere in the middle of their work.
TEST_F(RankExecutorTest, SurvivesMutatedPlans) {
  std::mt19937_64 random(4);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    Restart();
    std::string bytes = EncodePlan(GoodPlan());
    if (i % 2 == 0) {
      ASSERT_TRUE(executor_->Execute(bytes));
      BatchPlan next = DecodePlanOf(2, 6);
      if (i % 4 == 0) next.finished = {1}, next.rows.clear();
      bytes = EncodePlan(next);
    }
    for (uint64_t changes = 1 + random() % 2; changes > 0; --changes)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    accepted += executor_->Execute(bytes).has_value();
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace levin
