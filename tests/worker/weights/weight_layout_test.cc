// The planner's bytes are the allocator's, and the facts of a folder are those of its files.
#include "worker/weights/weight_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/config/m1_config.h"
#include "tests/worker/weights/model_folder.h"
#include "worker/weights/checkpoint_facts.h"
#include "worker/weights/needed_tensors.h"
#include "worker/weights/weight_loader.h"

namespace levin {
namespace {

using ::testing::AllOf;
using testing::GoldenModel;
using ::testing::HasSubstr;
using testing::ModelFolder;
using Source = CheckpointFacts::Source;

ModelConfig ConfigOf(const std::filesystem::path& dir) { return *LoadModelConfig(dir); }

class EveryGoldenModel : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryGoldenModel, IsPlannedWithTheBytesThatLoadingTakes) {
  const std::filesystem::path dir = GoldenModel(GetParam());
  const ModelConfig config = ConfigOf(dir);
  int splits = 0;
  for (int ranks : {1, 2, 3, 4, 6, 8, 16}) {
    if (!CheckTensorParallel(config, ranks).ok()) continue;
    ++splits;
    for (bool int8 : {false, true}) {
      int64_t largest = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const auto weights =
            LoadWeights(dir, config, {.rank = rank, .ranks = ranks, .quantize_experts_int8 = int8});
        ASSERT_TRUE(weights) << weights.error().message();
        const WeightBytes bytes =
            WeightBytesOf(config, {rank, ranks}, ExpertFormatFor(config, int8));
        EXPECT_EQ(bytes.total(), weights->bytes) << rank << "/" << ranks << " int8 " << int8;
        EXPECT_EQ(bytes.scales > 0, int8 || config.experts_stored_int8);
        largest = std::max(largest, bytes.total());
      }
      EXPECT_EQ(WeightBytesOf(config, {0, ranks}, ExpertFormatFor(config, int8)).total(), largest)
          << "rank 0 is the one to plan for";
    }
  }
  EXPECT_GE(splits, 3);
}
INSTANTIATE_TEST_SUITE_P(Golden, EveryGoldenModel,
                         ::testing::Values("tiny", "odd-heads", "deep", "tiny-native",
                                           "tiny-native-stacked", "tiny-int8"));

ModelConfig M1() { return *ParseModelConfig(boost::json::serialize(testing::M1Config())); }

double Gigabytes(int ranks, ExpertFormat experts) {
  return static_cast<double>(WeightBytesOf(M1(), {0, ranks}, experts).total()) / 1e9;
}

// model.md 9.1
TEST(WeightBytesOf, TheReleasedModelAreThePublishedOnes) {
  EXPECT_NEAR(Gigabytes(1, ExpertFormat::kBF16), 912.2, 0.05);
  EXPECT_NEAR(Gigabytes(2, ExpertFormat::kBF16), 456.1, 0.05);
  EXPECT_NEAR(Gigabytes(4, ExpertFormat::kBF16), 228.1, 0.05);
  EXPECT_NEAR(Gigabytes(8, ExpertFormat::kBF16), 114.1, 0.05);
  EXPECT_NEAR(Gigabytes(1, ExpertFormat::kInt8), 477.6, 0.05);
  EXPECT_NEAR(Gigabytes(2, ExpertFormat::kInt8), 238.9, 0.05);
  EXPECT_NEAR(Gigabytes(4, ExpertFormat::kInt8), 119.5, 0.05);
  EXPECT_NEAR(Gigabytes(8, ExpertFormat::kInt8), 59.81, 0.005);
  const WeightBytes bytes = WeightBytesOf(M1(), {0, 8}, ExpertFormat::kInt8);
  EXPECT_EQ(bytes.experts, int64_t{80} * 32 * 3 * 1152 * 6144);
  EXPECT_EQ(bytes.scales, int64_t{80} * 32 * (2 * 1152 + 6144) * 4);
  EXPECT_EQ(bytes.attention, (int64_t{70} * 5 * 1024 + 10 * (2 * 1024 + 2 * 128)) * 6144 * 2);
  EXPECT_EQ(bytes.embedding, int64_t{25008} * 6144 * 2);
  EXPECT_EQ(bytes.head, bytes.embedding);
  EXPECT_EQ(bytes.gates, int64_t{80} * 32 * 6144 * 4);
  EXPECT_EQ(bytes.norms, (int64_t{161} * 6144 + 70 * 1024) * 4);
}

TEST(WeightBytesOf, ATiedHeadCostsNothing) {
  ModelConfig config = M1();
  config.tie_word_embeddings = true;
  EXPECT_EQ(WeightBytesOf(config, {0, 8}, ExpertFormat::kInt8).head, 0);
}

CheckpointFacts FactsOf(const std::filesystem::path& dir) {
  const auto facts = InspectCheckpoint(dir, ConfigOf(dir));
  EXPECT_TRUE(facts) << facts.error().message();
  return facts ? *facts : CheckpointFacts{};
}

void RemoveShards(const ModelFolder& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().extension() == ".safetensors") std::filesystem::remove(entry.path());
  }
}

TEST(InspectCheckpoint, KnowsWhatIsThere) {
  const int64_t stored = 1'846'912;  // total_size of the golden index
  ModelFolder folder("tiny");
  CheckpointFacts facts = FactsOf(folder.path());
  EXPECT_EQ(facts.source, Source::kHeaders);
  EXPECT_EQ(facts.files, 2);
  EXPECT_EQ(facts.bytes, stored);
  EXPECT_EQ(facts.index_bytes, stored);
  const int64_t tensors = facts.tensors;

  RemoveShards(folder);
  facts = FactsOf(folder.path());
  EXPECT_EQ(facts.source, Source::kIndex);
  EXPECT_EQ(facts.files, 2);
  EXPECT_EQ(facts.tensors, tensors);
  EXPECT_EQ(facts.bytes, stored);

  std::filesystem::remove(folder.path() / "model.safetensors.index.json");
  facts = FactsOf(folder.path());
  EXPECT_EQ(facts.source, Source::kConfig);
  EXPECT_EQ(facts.files, 0);
  EXPECT_EQ(facts.tensors, tensors);
  EXPECT_EQ(facts.bytes, stored);
  EXPECT_EQ(facts.index_bytes, std::nullopt);
}

TEST(InspectCheckpoint, OneFileNeedsNoIndex) {
  ModelFolder folder("tiny");
  folder.Rewrite([](std::vector<testing::RawTensor>&) {});
  const CheckpointFacts facts = FactsOf(folder.path());
  EXPECT_EQ(facts.source, Source::kHeaders);
  EXPECT_EQ(facts.files, 1);
}

TEST(InspectCheckpoint, EverySpellingIsPlannedFromItsIndexAlone) {
  for (const char* model : {"tiny-native", "tiny-native-stacked", "tiny-int8", "odd-heads"}) {
    ModelFolder folder(model);
    const CheckpointFacts with_files = FactsOf(folder.path());
    RemoveShards(folder);
    const CheckpointFacts facts = FactsOf(folder.path());
    EXPECT_EQ(facts.source, Source::kIndex) << model;
    EXPECT_EQ(facts.tensors, with_files.tensors) << model;
  }
}

TEST(InspectCheckpoint, AnInterruptedCopyIsRefused) {
  ModelFolder folder("tiny");
  std::filesystem::remove(folder.path() / "model-00001-of-00002.safetensors");
  const auto facts = InspectCheckpoint(folder.path(), ConfigOf(folder.path()));
  ASSERT_FALSE(facts);
  EXPECT_THAT(facts.error().message(), HasSubstr("model-00001-of-00002.safetensors"));
}

TEST(InspectCheckpoint, AnIndexOfAnotherNetworkIsRefused) {
  ModelFolder folder("tiny");
  RemoveShards(folder);
  folder.SetConfig("num_local_experts", 5);
  const auto facts = InspectCheckpoint(folder.path(), ConfigOf(folder.path()));
  ASSERT_FALSE(facts);
  EXPECT_THAT(facts.error().message(), AllOf(HasSubstr("missing, 24 of them"),
                                             HasSubstr("block_sparse_moe.experts.4.w1.weight")));
}

}  // namespace
}  // namespace levin
