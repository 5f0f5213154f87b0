// The arithmetic of model.md 9 and operations.md 14, to the byte where they give bytes.
#include "common/config/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/config/m1_config.h"

namespace levin {
namespace {

ModelConfig M1() { return *ParseModelConfig(boost::json::serialize(testing::M1Config())); }

// What a rank of eight holds with int8 experts (model.md 9.1).
WeightBytes M1Weights() {
  return {.experts = 54'358'179'840,
          .scales = 86'507'520,
          .attention = 4'687'134'720,
          .embedding = 307'298'304,
          .head = 307'298'304,
          .gates = 62'914'560,
          .norms = 4'243'456};
}

MemoryDemand Eight(int64_t device_bytes, int64_t overhead = kPublishedOverheadBytes) {
  return {.ranks = 8,
          .device_bytes = device_bytes,
          .utilization = 0.95,
          .overhead_bytes = overhead,
          .kv_element_bytes = 2,
          .max_num_seqs = 256,
          .max_model_len = 0};
}

double MillionTokens(int64_t device_bytes, int64_t overhead) {
  const MemoryPlan plan = PlanMemory(M1(), M1Weights(), Eight(device_bytes, overhead));
  return static_cast<double>(plan.longest_tokens) / 1e6;
}

TEST(PlanMemory, GivesThePublishedContextsOfEightDevices) {
  const int64_t k80 = 80'000'000'000;
  const int64_t k96 = 96'000'000'000;
  EXPECT_NEAR(MillionTokens(k80, 0), 3.15, 0.005);
  EXPECT_NEAR(MillionTokens(k80, 2'000'000'000), 2.76, 0.005);
  EXPECT_NEAR(MillionTokens(k80, 5'200'000'000), 2.14, 0.005);
  EXPECT_NEAR(MillionTokens(k80, 10'000'000'000), 1.20, 0.005);
  EXPECT_NEAR(MillionTokens(k96, 0), 6.12, 0.005);
  EXPECT_NEAR(MillionTokens(k96, 2'000'000'000), 5.73, 0.005);
  EXPECT_NEAR(MillionTokens(k96, 5'200'000'000), 5.11, 0.005);
  EXPECT_NEAR(MillionTokens(k96, 10'000'000'000), 4.17, 0.005);
  // The guide's own lengths fit beside the assumed overhead.
  EXPECT_GE(MillionTokens(k80, kPublishedOverheadBytes), 2.048);
  EXPECT_GE(MillionTokens(k96, kPublishedOverheadBytes), 5.0);
}

TEST(PlanMemory, AccountsForEveryByteOfTheBudget) {
  const MemoryPlan plan = PlanMemory(M1(), M1Weights(), Eight(80'000'000'000));
  ASSERT_TRUE(plan.fits);
  EXPECT_EQ(plan.budget_bytes, 76'000'000'000);
  EXPECT_EQ(plan.weights.total(), 59'813'576'704);
  EXPECT_EQ(plan.cache_bytes, 76'000'000'000 - 59'813'576'704 - 5'200'000'000);
  EXPECT_EQ(plan.needed_bytes, 59'813'576'704 + 5'200'000'000 + (35 << 20) + (320 << 10));
  EXPECT_EQ(plan.geometry, MakeCacheGeometry(M1(), 8, 2));
  EXPECT_LE(plan.split.bytes_per_rank, plan.cache_bytes);
}

TEST(PlanMemory, CountsSequencesByContext) {
  const auto counts = [](int64_t device_bytes) {
    std::vector<int64_t> sequences;
    for (const auto& context : PlanMemory(M1(), M1Weights(), Eight(device_bytes)).contexts) {
      sequences.push_back(context.sequences);
    }
    return sequences;
  };
  EXPECT_THAT(counts(80'000'000'000), ::testing::ElementsAre(232, 139, 53, 15, 2));
  EXPECT_THAT(counts(96'000'000'000), ::testing::ElementsAre(554, 332, 128, 36, 4));
  EXPECT_THAT(counts(141'000'000'000), ::testing::ElementsAre(1460, 876, 337, 97, 12));
}

TEST(PlanMemory, TheSplitIsTheAllocatorsOwn) {
  for (int64_t seqs : {1, 16, 256}) {
    for (int64_t length : {0, 4096, 2'000'000}) {
      MemoryDemand demand = Eight(80'000'000'000);
      demand.max_num_seqs = seqs;
      demand.max_model_len = length;
      const MemoryPlan plan = PlanMemory(M1(), M1Weights(), demand);
      ASSERT_TRUE(plan.fits);
      EXPECT_EQ(plan.max_model_len, length > 0 ? length : 1'000'000);
      const auto split =
          SplitBudget(plan.cache_bytes * 8, 8, plan.geometry, seqs, plan.max_model_len);
      ASSERT_TRUE(split);
      EXPECT_EQ(plan.split, *split);
      EXPECT_EQ(plan.split.tokens_max, plan.max_model_len);
      for (const auto& context : plan.contexts) {
        EXPECT_LE(context.sequences_as_split, std::min(context.sequences, seqs));
        EXPECT_EQ(context.sequences_as_split > 0, context.tokens <= plan.max_model_len);
      }
    }
  }
}

TEST(PlanMemory, SaysWhatIsMissing) {
  WeightBytes bf16 = M1Weights();
  bf16.experts *= 2;
  bf16.scales = 0;
  const MemoryPlan plan = PlanMemory(M1(), bf16, Eight(80'000'000'000));
  EXPECT_FALSE(plan.fits);
  EXPECT_EQ(plan.cache_bytes, 76'000'000'000 - bf16.total() - 5'200'000'000);
  EXPECT_LT(plan.cache_bytes, 0);
  EXPECT_EQ(plan.longest_tokens, 0);
  EXPECT_GT(plan.needed_bytes, plan.budget_bytes);
  EXPECT_TRUE(plan.contexts.empty());
}

TEST(PlanMemory, FitsExactlyFromTheNeededBytesOn) {
  for (int64_t length : {0, 1, 64, 65, 5'000'000}) {
    MemoryDemand demand = Eight(80'000'000'000);
    demand.utilization = 1;
    demand.max_model_len = length;
    demand.device_bytes = PlanMemory(M1(), M1Weights(), demand).needed_bytes;
    EXPECT_TRUE(PlanMemory(M1(), M1Weights(), demand).fits) << length;
    --demand.device_bytes;
    EXPECT_FALSE(PlanMemory(M1(), M1Weights(), demand).fits) << length;
  }
}

TEST(PlanMemory, OffersNoMoreThanTheModelsWindow) {
  const int64_t huge = 1'000'000'000'000;
  EXPECT_EQ(PlanMemory(M1(), M1Weights(), Eight(huge)).max_model_len, 1'000'000);
  EXPECT_EQ(PlanMemory(M1(), M1Weights(), Eight(huge)).longest_tokens, 10'240'000);
  ModelConfig text = M1();
  text.family = ModelConfig::Family::kText01;
  EXPECT_EQ(PlanMemory(text, M1Weights(), Eight(huge)).max_model_len, 4'000'000);
  text.max_positions = 8192;
  const MemoryPlan small = PlanMemory(text, M1Weights(), Eight(huge));
  EXPECT_EQ(small.max_model_len, 8192);
  EXPECT_GT(small.contexts[1].sequences, 0);
  EXPECT_EQ(small.contexts[2].sequences, 0) << "32k is beyond its positions";
}

}  // namespace
}  // namespace levin
