#include "worker/process/step_meter.h"

#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"
#include "worker/comm/local_collective.h"

namespace levin {
namespace {

BatchPlan PlanOf(std::initializer_list<PlanRow> rows) {
  BatchPlan plan;
  plan.rows = rows;
  return plan;
}
PlanRow Prefill(SequenceId sequence, int64_t position, int32_t count) {
  return {.sequence = sequence, .position = position, .tokens = {0, count}};
}
PlanRow Decode(SequenceId sequence, int64_t position) {
  return {.sequence = sequence, .position = position, .tokens = {}, .stepwise = true, .draws = 1};
}

class StepMeterTest : public ::testing::Test {
 protected:
  void Step(const BatchPlan& plan) {
    StepBatch batch;
    batch.row_first = {0};
    for (const PlanRow& row : plan.rows)
      batch.row_first.push_back(batch.row_first.back() + std::max(row.tokens.count, 1));
    ASSERT_TRUE(meter_.BeforeRun(plan, batch).ok());
    clock_.Advance(std::chrono::milliseconds(20));
    ASSERT_TRUE(meter_.AfterRun(plan, batch).ok());
  }

  FakeClock clock_;
  WorkerMetrics metrics_{{.model_name = "m", .group = "g", .rank = 0, .world_size = 1}};
  TimedCollective collective_{std::move(MakeLocalCollectives(1).front())};
  StepMeter meter_{metrics_, collective_, clock_, 64};
};

TEST_F(StepMeterTest, TellsTheKindsOfStepsApart) {
  EXPECT_EQ(KindOf(PlanOf({})), StepKind::kEmpty);
  EXPECT_EQ(KindOf(PlanOf({Prefill(1, 0, 5)})), StepKind::kPrefill);
  EXPECT_EQ(KindOf(PlanOf({Decode(1, 5)})), StepKind::kDecode);
  EXPECT_EQ(KindOf(PlanOf({Decode(1, 5), Prefill(2, 0, 5)})), StepKind::kMixed);
}

TEST_F(StepMeterTest, CountsAndTimesEachStep) {
  Step(PlanOf({Prefill(1, 0, 64)}));
  Step(PlanOf({Decode(1, 64)}));
  Step(PlanOf({Decode(1, 65)}));
  EXPECT_EQ(metrics_.leader->steps(StepKind::kDecode).value(), 2);
  EXPECT_EQ(metrics_.leader->steps(StepKind::kPrefill).value(), 1);
  EXPECT_EQ(meter_.steps(), 3u);
  const std::string text = metrics_.Serialize();
  EXPECT_NE(text.find("levin_step_duration_seconds_sum{"), std::string::npos);
}

TEST_F(StepMeterTest, FollowsTheBlocksThatHoldTokens) {
  Step(PlanOf({Prefill(1, 0, 64), Prefill(2, 0, 10)}));
  EXPECT_EQ(meter_.blocks_used(), 2);
  Step(PlanOf({Decode(1, 64), Decode(2, 10)}));
  EXPECT_EQ(meter_.blocks_used(), 3);
  BatchPlan plan = PlanOf({Decode(2, 11)});
  plan.finished = {1};
  Step(plan);
  EXPECT_EQ(meter_.blocks_used(), 1);
}

}  // namespace
}  // namespace levin
