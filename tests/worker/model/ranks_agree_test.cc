// What every rank must have alike to the bit: the residual branch, the router's logits and the
// experts chosen, in prompts, chunks and single tokens; and vocabularies that no rank count
// divides.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tests/worker/model/tiny_network.h"
#include "tests/worker/weights/model_folder.h"

namespace levin::testing {
namespace {

// The bytes of everything that the probe sees, in order, and how much of it there was.
class Recorder final : public Probe {
 public:
  void OnTensor(std::string_view what, int layer, const TensorView& value,
                const StepBatch&) override {
    const auto bytes = value.span();
    seen[std::string(what) + "." + std::to_string(layer)].append(
        reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  bool wants_logits() const override { return false; }
  void OnLogits(const TensorView&, const StepBatch&) override {}

  std::map<std::string, std::string> seen;
};

class RanksAgreeTest : public ::testing::TestWithParam<std::tuple<DType, bool>> {};

TEST_P(RanksAgreeTest, RoutingHasTheSameBitsOnEveryRank) {
  const auto [activations, int8] = GetParam();
  for (const int ranks : {2, 4, 8}) {
    GroupOptions options;
    options.ranks = ranks;
    options.activations = activations;
    options.int8 = int8;
    ModelGroup group(Tiny(), options);
    std::vector<Recorder> recorders(ranks);
    for (int r = 0; r < ranks; ++r) group.model(r).set_probe(&recorders[r]);
    group.Prefill(Prompt(1, 130), 0);
    group.Prefill(Prompt(2, 100), 64);
    group.ReleaseAll();
    TestSequence sequence = group.Sequence(1, 40);
    group.Run(MakeBatch(std::vector<Feed>{{&sequence, Prompt(3, 20), false}}));
    group.Greedy(sequence, 5, 12);
    const int layers = group.config().layers;
    ASSERT_EQ(static_cast<size_t>(4 * layers + 1), recorders[0].seen.size());
    const auto tokens = static_cast<size_t>(130 + 100 + 20 + 11);
    ASSERT_EQ(tokens * group.config().experts_per_token * 4, recorders[0].seen["experts.0"].size());
    for (int r = 1; r < ranks; ++r) {
      for (const auto& [name, bytes] : recorders[0].seen) {
        EXPECT_TRUE(bytes == recorders[r].seen[name]) << name << ", rank " << r << " of " << ranks;
      }
    }
  }
}

std::string Modes(const ::testing::TestParamInfo<std::tuple<DType, bool>>& info) {
  return std::string(Name(std::get<0>(info.param))) + (std::get<1>(info.param) ? "_int8" : "");
}
INSTANTIATE_TEST_SUITE_P(Modes, RanksAgreeTest,
                         ::testing::Combine(::testing::Values(DType::kF32, DType::kBF16),
                                            ::testing::Bool()),
                         Modes);

// 317 rows on 8 ranks: 40 each and 37; 17 rows on 4: five each and two. A split that leaves a rank
// without rows is refused (TensorParallel tests).
TEST(VocabularyTest, OneThatTheRanksDoNotDivideIsTheSameNetwork) {
  for (const int64_t vocab : {317, 17}) {
    ModelFolder folder("tiny");
    folder.SetConfig("vocab_size", vocab);
    folder.Rewrite([&](std::vector<RawTensor>& tensors) {
      for (const char* name : {"model.embed_tokens.weight", "lm_head.weight"}) {
        RawTensor& tensor = Named(tensors, name);
        tensor.bytes.resize(tensor.bytes.size() / tensor.shape[0] * vocab);
        tensor.shape[0] = vocab;
      }
    });
    std::vector<TokenId> prompt;
    for (int64_t t = 0; t < 70; ++t)
      prompt.push_back(static_cast<TokenId>((t * t + 3 * t) % vocab));
    prompt.push_back(static_cast<TokenId>(vocab - 1));  // of the last rank that has any
    const std::vector<float> expected = ModelGroup(folder.path(), {}).Prefill(prompt, 0);
    ASSERT_EQ(prompt.size() * vocab, expected.size());
    for (const int ranks : vocab == 17 ? std::vector{2, 4} : std::vector{2, 4, 8}) {
      GroupOptions options;
      options.ranks = ranks;
      EXPECT_LE(Difference(expected, ModelGroup(folder.path(), options).Prefill(prompt, 0)), 5e-5f)
          << vocab << " rows on " << ranks << " ranks";
    }
  }
}

}  // namespace
}  // namespace levin::testing
