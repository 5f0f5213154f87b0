// What must hold whatever the weights are (model.md 12): cutting, company, slots, ranks.
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/worker/model/tiny_network.h"
#include "worker/comm/local_collective.h"

namespace levin::testing {
namespace {

TEST(IdentitiesTest, AOneTokenPromptOnADirtySlotIsAsOnACleanOne) {
  for (const DType act : {DType::kF32, DType::kBF16}) {
    GroupOptions options;
    options.activations = act;
    ModelGroup group(Tiny(), options);
    for (const int64_t chunk : {0, 1}) {
      const std::vector<float> clean = group.Prefill(std::vector<TokenId>{17}, chunk);
      group.Prefill(Prompt(1, 70), 0);
      EXPECT_EQ(clean, group.Prefill(std::vector<TokenId>{17}, chunk));
      FillWithNan(group.model(0).states());
      FillWithNan(group.model(0).kv());
      EXPECT_EQ(clean, group.Prefill(std::vector<TokenId>{17}, chunk));
    }
  }
}

TEST(IdentitiesTest, PrefillAndThenOneTokenAtATimeIsTheLongerPrefill) {
  ModelGroup group(Tiny(), {});
  const std::vector<TokenId> prompt = Prompt(2, 140);
  const std::vector<float> whole = group.Prefill(prompt, 0);
  const int64_t vocab = group.config().vocab;
  group.ReleaseAll();
  TestSequence sequence = group.Sequence(5, 140);
  std::vector<float> logits = group.Run(
      MakeBatch(std::vector<Feed>{{&sequence, {prompt.begin(), prompt.begin() + 100}, false}}));
  for (int64_t t = 100; t < 140; ++t) {
    const std::vector<float> one =
        group.Run(MakeBatch(std::vector<Feed>{{&sequence, {prompt[t]}, true}}));
    logits.insert(logits.end(), one.begin(), one.end());
  }
  EXPECT_LE(Difference(logits, whole), 1e-4f);
  EXPECT_EQ(static_cast<size_t>(140 * vocab), logits.size());
}

// Prompts of awkward lengths in one step, in two orders, with decoding rows between them and NaN in
// every slot and block that nobody owns.
TEST(IdentitiesTest, ASequenceHasTheSameBitsAloneAndInAnyBatch) {
  GroupOptions options;
  options.ranks = 2;
  options.threads = 2;
  ModelGroup group(Tiny(), options);
  const std::vector<int64_t> lengths = {1, 17, 63, 64, 65, 255};
  std::vector<std::vector<float>> alone;
  for (size_t i = 0; i < lengths.size(); ++i) {
    alone.push_back(group.Prefill(Prompt(static_cast<int>(i), lengths[i]), 0));
  }
  for (const bool reversed : {false, true}) {
    for (int r = 0; r < 2; ++r) {
      FillWithNan(group.model(r).states());
      FillWithNan(group.model(r).kv());
    }
    group.ReleaseAll();
    TestSequence decoding = group.Sequence(7, 64);
    group.Run(MakeBatch(std::vector<Feed>{{&decoding, {1, 2, 3}, false}}));
    std::vector<TestSequence> sequences;
    std::vector<size_t> order;
    for (size_t i = 0; i < lengths.size(); ++i) {
      sequences.push_back(group.Sequence(static_cast<int32_t>(i), lengths[i]));
      order.push_back(reversed ? lengths.size() - 1 - i : i);
    }
    std::vector<Feed> feeds;
    for (size_t i : order) {
      feeds.push_back({&sequences[i], Prompt(static_cast<int>(i), lengths[i]), false});
      if (i == 3) feeds.push_back({&decoding, {9}, true});
    }
    const std::vector<float> together = group.Run(MakeBatch(feeds));
    size_t at = 0;
    for (const Feed& feed : feeds) {
      const size_t size = feed.tokens.size() * group.config().vocab;
      for (size_t i = 0; i < sequences.size(); ++i) {
        if (feed.sequence != &sequences[i]) continue;
        EXPECT_EQ(alone[i], std::vector<float>(together.begin() + at, together.begin() + at + size))
            << lengths[i] << " tokens, reversed " << reversed;
      }
      at += size;
    }
  }
}

TEST(IdentitiesTest, AnyNumberOfRanksAndThreadsIsTheSameNetwork) {
  const std::vector<TokenId> prompt = Prompt(3, 90);
  ModelGroup one(Tiny(), {});
  const std::vector<float> expected = one.Prefill(prompt, 0);
  for (const int ranks : {1, 2, 4, 8}) {
    GroupOptions options;
    options.ranks = ranks;
    options.threads = 2;
    ModelGroup group(Tiny(), options);
    const std::vector<float> got = group.Prefill(prompt, 0);
    if (ranks == 1) {
      EXPECT_EQ(expected, got) << "threads must not change a bit";
    } else {
      EXPECT_LE(Difference(expected, got), 5e-5f) << ranks;
    }
  }
}

TEST(IdentitiesTest, EveryCpuPathIsTheSameNetwork) {
  const std::vector<TokenId> prompt = Prompt(4, 80);
  GroupOptions plain;
  plain.path = CpuPath::kPlain;
  const std::vector<float> expected = ModelGroup(Tiny(), plain).Prefill(prompt, 0);
  for (const CpuPath path : {CpuPath::kAvx2, CpuPath::kAvx512}) {
    if (path > BestCpuPath()) continue;
    GroupOptions options;
    options.path = path;
    EXPECT_LE(Difference(expected, ModelGroup(Tiny(), options).Prefill(prompt, 0)), 5e-5f)
        << Name(path);
  }
}

// With alpha = beta = 1 pre-norm is the ordinary block: the raw sum goes on. It must differ from
// post-norm, and be the same however the prompt is cut.
TEST(IdentitiesTest, PreNormCarriesTheSumOn) {
  GroupOptions options;
  options.change_config = [](ModelConfig& config) { config.postnorm = false; };
  const std::vector<TokenId> prompt = Prompt(5, 70);
  ModelGroup pre(Tiny(), options);
  const std::vector<float> whole = pre.Prefill(prompt, 0);
  EXPECT_LE(Difference(whole, pre.Prefill(prompt, 1)), 1e-3f);
  EXPECT_GT(Difference(whole, ModelGroup(Tiny(), {}).Prefill(prompt, 0)), 0.1f);
}

TEST(IdentitiesTest, TheEpsilonOfTheInnerNormIsASetting) {
  const auto odd = GoldenDirs("network").front() / "odd-heads";
  GroupOptions options;
  options.change_config = [](ModelConfig& config) { config.lightning_norm_eps = 1e-5f; };
  const std::vector<TokenId> prompt = {3, 1, 4, 1, 5, 9, 2};
  EXPECT_GT(Difference(ModelGroup(odd, {}).Prefill(prompt, 0),
                       ModelGroup(odd, options).Prefill(prompt, 0)),
            1e-3f);
}

TEST(IdentitiesTest, AnImpossibleSplitIsRefused) {
  ModelConfig config = *LoadModelConfig(GoldenDirs("network").front() / "odd-heads");
  auto model =
      HybridModel::Create(config, ModelWeights{}, nullptr, *MakeLocalCollectives(8)[0], {});
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(Code::kInvalidArgument, model.error().code());
}

}  // namespace
}  // namespace levin::testing
