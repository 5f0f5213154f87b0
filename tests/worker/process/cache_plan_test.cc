#include "worker/process/cache_plan.h"

#include <gtest/gtest.h>

#include "common/config/memory_plan.h"

namespace levin {
namespace {

constexpr int64_t kMib = 1 << 20;

class CachePlanTest : public ::testing::Test {
 protected:
  CachePlanTest() {
    const Result<ModelConfig> config = LoadModelConfig(LEVIN_SOURCE_DIR "/models/levin-demo");
    EXPECT_TRUE(config);
    config_ = *config;
    options_.world_size = 2;
  }
  CachePlan Plan(int64_t available) {
    const OrExit<CachePlan> plan = PlanCache(options_, config_, available);
    EXPECT_TRUE(plan) << plan.error().status.message();
    return plan ? *plan : CachePlan();
  }

  ModelConfig config_;
  WorkerOptions options_;
};

TEST_F(CachePlanTest, TakesAQuarterOfTheFreeMemoryAtMost) {
  const CachePlan plan = Plan(400 * kMib);
  EXPECT_LE(plan.split.bytes_per_rank * 2, 100 * kMib);
  EXPECT_GT(plan.split.bytes_per_rank * 2, 90 * kMib);
}

TEST_F(CachePlanTest, AGivenBudgetIsKept) {
  options_.cache_bytes = 10 * kMib;
  const CachePlan plan = Plan(400 * kMib);
  EXPECT_LE(plan.split.bytes_per_rank * 2, 10 * kMib);
}

TEST_F(CachePlanTest, ByItselfTheLongestSequenceLeavesRoomForOthers) {
  options_.cache_bytes = 16 * kMib;
  const CachePlan plan = Plan(0);
  EXPECT_GT(plan.split.slots, 8);
  EXPECT_GE(plan.max_model_len, 1024);
  EXPECT_LE(plan.max_model_len, config_.max_positions);
  EXPECT_LE(BlocksFor(plan.geometry, plan.max_model_len, 0), plan.split.blocks);
}

TEST_F(CachePlanTest, AnAskedLengthIsKeptUpToTheModelsWindow) {
  options_.max_model_len = 1000;
  EXPECT_EQ(Plan(400 * kMib).max_model_len, 1000);
  options_.max_model_len = 1'000'000'000;
  EXPECT_EQ(Plan(400 * kMib).max_model_len, config_.max_positions);
}

TEST_F(CachePlanTest, TenMillionTokensAreAcceptedWhereTheCacheHoldsThem) {
  constexpr int64_t kTokens = 10'240'000;
  config_.max_positions = kTokens;
  options_.max_model_len = kTokens;
  const CacheGeometry geometry = MakeCacheGeometry(config_, options_.world_size, 2);
  const int64_t bytes =
      options_.world_size * (geometry.state_bytes_per_slot +
                             BlocksFor(geometry, kTokens, 0) * geometry.kv_bytes_per_block);
  ASSERT_GT(bytes, int64_t{1} << 31);
  options_.cache_bytes = bytes;
  const CachePlan plan = Plan(0);
  EXPECT_EQ(plan.max_model_len, kTokens);
  EXPECT_GE(plan.split.tokens_max, kTokens);
  EXPECT_GE(plan.split.blocks, kTokens / geometry.block_tokens);
  // A byte less holds a block less, and says so: such a prompt is refused with both numbers.
  options_.cache_bytes = bytes - 1;
  EXPECT_EQ(Plan(0).split.tokens_max, kTokens - geometry.block_tokens);
}

TEST_F(CachePlanTest, UnaskedItOffersTheWindowThatThePlannerOffers) {
  config_.max_positions = int64_t{1} << 30;
  options_.cache_bytes = int64_t{1} << 50;
  MemoryDemand demand;
  demand.ranks = options_.world_size;
  demand.device_bytes = options_.cache_bytes;
  for (const auto family : {ModelConfig::Family::kM1, ModelConfig::Family::kText01}) {
    config_.family = family;
    EXPECT_EQ(Plan(0).max_model_len, UsableWindow(config_));
    EXPECT_EQ(PlanMemory(config_, {}, demand).max_model_len, UsableWindow(config_));
  }
}

TEST_F(CachePlanTest, TooLittleMemoryIsAMemoryExitWithTheNumbers) {
  options_.cache_bytes = 4096;
  const OrExit<CachePlan> nothing = PlanCache(options_, config_, 400 * kMib);
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, ExitCode::kMemory);
  EXPECT_NE(nothing.error().status.message().find("4096"), std::string::npos);
  options_.cache_bytes = 64 * kMib;
  const OrExit<CachePlan> more = PlanCache(options_, config_, 8 * kMib);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, ExitCode::kMemory);
  EXPECT_NE(more.error().status.message().find("only 8 MiB are available"), std::string::npos);
}

TEST_F(CachePlanTest, AJobTakesWhatItsPromptsNeed) {
  EvalJob job;
  job.prompts = {{"a", std::vector<TokenId>(64)}, {"b", std::vector<TokenId>(65)}};
  job.greedy = 1;
  OrExit<CachePlan> plan = PlanJobCache(options_, job, config_, 400 * kMib);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->split.slots, 1);
  EXPECT_EQ(plan->split.blocks, 2);
  EXPECT_EQ(plan->max_model_len, 66);
  job.batch = true;
  plan = PlanJobCache(options_, job, config_, 400 * kMib);
  EXPECT_EQ(plan->split.slots, 2);
  EXPECT_EQ(plan->split.blocks, 4);
}

}  // namespace
}  // namespace levin
