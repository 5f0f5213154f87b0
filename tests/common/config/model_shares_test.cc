#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "common/config/model_config.h"
#include "tests/common/config/m1_config.h"
#include "tests/support/golden.h"

namespace levin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ModelConfig M1() { return *ParseModelConfig(boost::json::serialize(testing::M1Config())); }

ModelConfig Golden(const char* name) {
  return *LoadModelConfig(testing::GoldenDirs("network").front() / name);
}

// The definition of the slopes as the papers write it.
std::vector<double> Recursive(int heads) {
  const double log = std::log2(heads);
  if (log == std::floor(log)) {
    const double start = std::pow(2.0, -std::pow(2.0, -(log - 3)));
    std::vector<double> slopes;
    for (int i = 0; i < heads; ++i) slopes.push_back(start * std::pow(start, i));
    return slopes;
  }
  const int power = 1 << static_cast<int>(std::floor(log));
  std::vector<double> slopes = Recursive(power);
  const std::vector<double> more = Recursive(2 * power);
  for (int i = 0; i < heads - power; ++i) slopes.push_back(more[static_cast<size_t>(2 * i)]);
  return slopes;
}

TEST(LightningSlopes, AreThoseOfTheReleasedModel) {
  const ModelConfig config = M1();
  EXPECT_NEAR(LightningSlopes(config, 0)[0], 0.917013, 1e-6);
  EXPECT_NEAR(LightningSlopes(config, 0)[63], 0.00390629, 1e-8);
  EXPECT_NEAR(LightningSlopes(config, 78)[0], 0.0116168, 1e-7);
  EXPECT_NEAR(LightningSlopes(config, 78)[63], 4.9485e-5, 1e-9);
  EXPECT_NEAR(LightningSlopes(config, 40)[7], 0.5 * 0.4936809, 1e-7);
  EXPECT_EQ(LightningSlopes(config, 0).size(), 64u);
}

TEST(LightningSlopes, FollowTheRecursiveDefinitionForAnyHeadCount) {
  for (int heads : {1, 2, 8, 12, 48, 64, 96}) {
    ModelConfig config = M1();
    config.heads = heads;
    const std::vector<double> expected = Recursive(heads);
    const std::vector<double> slopes = LightningSlopes(config, 0);
    for (int h = 0; h < heads; ++h) {
      EXPECT_NEAR(slopes[static_cast<size_t>(h)], expected[static_cast<size_t>(h)] * (1 + 1e-5),
                  1e-12)
          << heads << " heads, head " << h;
    }
  }
}

TEST(LightningSlopes, OfASingleLayerHaveTheFullFactor) {
  ModelConfig config = M1();
  config.layers = 1;
  config.layer_kinds = {LayerKind::kLightning};
  EXPECT_DOUBLE_EQ(LightningSlopes(config, 0)[7], 0.5 * (1 + 1e-5));
}

TEST(TensorParallel, IllegalSizesAreRefusedWithTheNumbers) {
  const ModelConfig odd = Golden("odd-heads");
  EXPECT_TRUE(CheckTensorParallel(odd, 1).ok());
  EXPECT_TRUE(CheckTensorParallel(odd, 2).ok());
  EXPECT_TRUE(CheckTensorParallel(odd, 4).ok());
  EXPECT_THAT(CheckTensorParallel(odd, 8).message(),
              AllOf(HasSubstr("8 does not divide num_attention_heads 12"), HasSubstr("1, 2, 4")));
  EXPECT_THAT(CheckTensorParallel(odd, 3).message(), HasSubstr("intermediate_size 80"));
  EXPECT_FALSE(CheckTensorParallel(odd, 0).ok());
  EXPECT_FALSE(CheckTensorParallel(odd, -1).ok());
  ModelConfig kv = M1();
  kv.kv_heads = 16;
  kv.heads = 48;
  EXPECT_THAT(CheckTensorParallel(kv, 24).message(),
              AllOf(HasSubstr("24"), HasSubstr("num_key_value_heads 16")));
  for (int ranks : {1, 2, 4, 8, 16, 32, 64}) {
    EXPECT_TRUE(CheckTensorParallel(M1(), ranks).ok()) << ranks;
  }
  ModelConfig few = Golden("tiny");
  few.vocab = 9;
  EXPECT_THAT(CheckTensorParallel(few, 8).message(), HasSubstr("vocab_size 9"));
}

TEST(TensorParallel, KvHeadsAreReplicatedInGroupsOfConsecutiveRanks) {
  const ModelConfig tiny = Golden("tiny");  // 2 KV heads
  EXPECT_EQ(LocalKvHeads(tiny, 1), 2);
  EXPECT_EQ(LocalKvHeads(tiny, 2), 1);
  EXPECT_EQ(LocalKvHeads(tiny, 8), 1);
  for (int rank = 0; rank < 8; ++rank) EXPECT_EQ(FirstKvHead(tiny, rank, 8), rank / 4);
  // The query heads of a rank read the KV head that the rank holds.
  for (int ranks : {1, 2, 4, 8}) {
    for (int rank = 0; rank < ranks; ++rank) {
      const int group = tiny.heads / tiny.kv_heads;
      const int first_query = rank * LocalHeads(tiny, ranks);
      const int last_query = first_query + LocalHeads(tiny, ranks) - 1;
      EXPECT_EQ(first_query / group, FirstKvHead(tiny, rank, ranks));
      EXPECT_EQ(last_query / group, FirstKvHead(tiny, rank, ranks) + LocalKvHeads(tiny, ranks) - 1);
    }
  }
}

TEST(TensorParallel, VocabularyRowsCoverEverythingOnce) {
  ModelConfig config = M1();
  for (int vocab : {200064, 200065, 321, 10}) {
    config.vocab = vocab;
    for (int ranks : {1, 2, 4, 8}) {
      int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const VocabSlice slice = LocalVocab(config, rank, ranks);
        EXPECT_TRUE(slice.count == 0 || slice.first == next);
        next += slice.count;
      }
      EXPECT_EQ(next, vocab);
    }
  }
  EXPECT_EQ(LocalVocab(M1(), 7, 8).first, 7 * 25008);
  EXPECT_EQ(LocalVocab(M1(), 7, 8).count, 25008);
}

}  // namespace
}  // namespace levin
