#include "worker/sample/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <vector>

#include "worker/sample/filter.h"

namespace levin {
namespace {

constexpr int32_t kVocab = 32;

std::vector<float> RandomLogits(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> logits(kVocab);
  for (float& logit : logits) logit = static_cast<float>(random() % 1000) / 100 - 5;
  return logits;
}

SamplingParams Greedy() {
  SamplingParams params;
  params.temperature = 0;
  return params;
}

TokenId Drawn(const std::vector<float>& logits, const SamplingParams& params,
              const TokenHistory& history = {}, int64_t index = 0) {
  Sampler sampler(kVocab, {});
  const Draw draw = sampler.Sample(logits, params, history, index);
  EXPECT_FALSE(draw.numeric_fault);
  return draw.token.token;
}

TEST(SamplerTest, NeverDrawsNorListsAnUndefinedIdThatHasTheLargestLogit) {  // C22
  std::vector<float> logits = RandomLogits(1);
  logits[30] = 50;
  logits[7] = 20;
  std::vector<bool> defined(kVocab, true);
  defined[30] = defined[31] = false;
  Sampler sampler(kVocab, defined);
  SamplingParams params = Greedy();
  params.logprobs = kVocab;
  const Draw greedy = sampler.Sample(logits, params, {}, 0);
  EXPECT_EQ(greedy.token.token, 7);
  EXPECT_EQ(greedy.token.rank, 1);
  EXPECT_EQ(greedy.token.top.size(), static_cast<size_t>(kVocab - 2));
  for (const TopLogprob& top : greedy.token.top) EXPECT_LT(top.token, 30);
  params.temperature = 2;
  for (int i = 0; i < 2000; ++i) EXPECT_LT(sampler.Sample(logits, params, {}, i).token.token, 30);
}

TEST(SamplerTest, ANotANumberInAnUndefinedIdHarmsNobodyInADefinedOneEndsTheRow) {
  std::vector<float> logits = RandomLogits(2);
  logits[31] = NAN;
  std::vector<bool> defined(kVocab, true);
  defined[31] = false;
  EXPECT_FALSE(Sampler(kVocab, defined).Sample(logits, Greedy(), {}, 0).numeric_fault);
  EXPECT_TRUE(Sampler(kVocab, {}).Sample(logits, Greedy(), {}, 0).numeric_fault);
  logits[31] = INFINITY;
  EXPECT_TRUE(Sampler(kVocab, {}).Sample(logits, Greedy(), {}, 0).numeric_fault);
}

TEST(SamplerTest, ParametersThatLeaveNoTokenAreAFaultOfThatRow) {
  SamplingParams params;
  params.allowed_ids = {3};
  params.stop_ids = {3};
  params.min_tokens = 1;
  Sampler sampler(kVocab, {});
  EXPECT_TRUE(sampler.Sample(RandomLogits(3), params, {}, 0).numeric_fault);
  EXPECT_FALSE(sampler.Sample(RandomLogits(3), params, {}, 1).numeric_fault);
}

TEST(SamplerTest, AFaultLeavesNothingBehindForTheNextRow) {  // C46
  Sampler sampler(kVocab, {});
  SamplingParams sampled;
  sampled.seed = 9;
  const std::vector<float> good = RandomLogits(4);
  const TokenId alone = Drawn(good, sampled);
  std::vector<float> bad = good;
  bad[5] = NAN;
  SamplingParams constrained = Greedy();
  constrained.allowed_ids = {1};
  EXPECT_TRUE(sampler.Sample(bad, Greedy(), {}, 0).numeric_fault);
  EXPECT_EQ(sampler.Sample(good, constrained, {}, 0).token.token, 1);
  EXPECT_EQ(sampler.Sample(good, sampled, {}, 0).token.token, alone);
}

TEST(SamplerTest, MinTokensHoldsBackTheStopIdsUntilThen) {
  std::vector<float> logits = RandomLogits(5);
  logits[4] = 40;
  logits[9] = 30;
  SamplingParams params = Greedy();
  params.stop_ids = {4};
  params.min_tokens = 3;
  EXPECT_EQ(Drawn(logits, params, {}, 0), 9);
  EXPECT_EQ(Drawn(logits, params, {}, 2), 9);
  EXPECT_EQ(Drawn(logits, params, {}, 3), 4);
}

TEST(SamplerTest, ABadSequenceIsNeverCompleted) {
  std::vector<float> logits = RandomLogits(6);
  logits[8] = 40;
  logits[2] = 30;
  SamplingParams params = Greedy();
  params.bad_sequences = {{5, 6, 8}, {11}};
  TokenHistory history;
  for (TokenId id : {5, 6}) history.Add(id);
  EXPECT_EQ(Drawn(logits, params, history, 2), 2);
  history.Add(6);  // 5 6 6: not its beginning
  EXPECT_EQ(Drawn(logits, params, history, 3), 8);
  logits[11] = 50;  // one id alone is always ruled out
  EXPECT_EQ(Drawn(logits, params, history, 3), 8);
}

TEST(SamplerTest, BiasForcesAndForbidsButIsNoMask) {
  const std::vector<float> logits = RandomLogits(7);
  SamplingParams params = Greedy();
  params.logit_bias = {{17, 100.0f}};
  EXPECT_EQ(Drawn(logits, params), 17);
  params.logit_bias = {{17, -100.0f}};
  params.allowed_ids = {17};
  EXPECT_EQ(Drawn(logits, params), 17);
}

TEST(SamplerTest, GreedyTiesGoToTheLowestId) {
  std::vector<float> logits(kVocab, 1.0f);
  EXPECT_EQ(Drawn(logits, Greedy()), 0);
  logits[20] = logits[12] = 2;
  EXPECT_EQ(Drawn(logits, Greedy()), 12);
}

TEST(SamplerTest, GreedyIgnoresTheFilters) {
  std::vector<float> logits = RandomLogits(8);
  logits[3] = 30;
  SamplingParams params = Greedy();
  params.top_p = 1e-6f;
  params.min_p = 1;
  params.top_k = 1;
  EXPECT_EQ(Drawn(logits, params), 3);
}

TEST(SamplerTest, AVerySmallTemperatureOverflowsNothing) {
  std::vector<float> logits = RandomLogits(9);
  logits[3] = 3e4f;
  SamplingParams params;
  params.temperature = 2e-5f;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Drawn(logits, params, {}, i), 3);
}

// A masked logit is -inf: no temperature of a neighbour may make a NaN of it.
TEST(SamplerTest, RowsOfEveryKindInOneBatchDrawWhatTheyDrawAlone) {  // C46
  std::vector<float> logits = RandomLogits(20);
  logits[3] = logits[11] = -INFINITY;  // from the network itself
  SamplingParams sampled, constrained, biased, counted = Greedy();
  sampled.temperature = 1.3f;
  sampled.seed = 5;
  sampled.logprobs = 4;
  constrained.allowed_ids = {3, 8, 9};
  constrained.temperature = 1e-4f;
  biased.logit_bias = {{11, 100.0f}, {4, -100.0f}};
  biased.top_p = 0.5f;
  biased.seed = 6;
  counted.repetition_penalty = 1.5f;
  counted.presence_penalty = 0.5f;
  counted.logprobs = kVocab;
  const std::vector<SamplingParams> batch = {Greedy(), sampled, constrained, biased, counted};
  std::vector<TokenId> alone;
  for (const SamplingParams& params : batch) alone.push_back(Drawn(logits, params));
  EXPECT_EQ(alone[0], std::max_element(logits.begin(), logits.end()) - logits.begin());
  EXPECT_TRUE(alone[2] == 8 || alone[2] == 9) << "a masked id was drawn";
  std::vector<size_t> order = {0, 1, 2, 3, 4};
  Sampler shared(kVocab, {});
  do {
    for (const size_t row : order) {
      const Draw draw = shared.Sample(logits, batch[row], {}, 0);
      ASSERT_FALSE(draw.numeric_fault) << row;
      ASSERT_EQ(draw.token.token, alone[row]) << row;
      for (const TopLogprob& top : draw.token.top) ASSERT_FALSE(std::isnan(top.logprob)) << row;
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

// What is in range but extreme behaves like its limit; what is out of range never comes here
// (SamplingCheckTest, RequestCheckTest).
TEST(SamplerTest, ExtremeNumbersBehaveLikeTheirLimit) {  // C47
  const std::vector<float> logits = RandomLogits(21);
  const auto best =
      static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  Sampler sampler(kVocab, {});
  for (const float temperature : {0.0f, 1e-7f, 1e-4f, 1.0f, 2.0f}) {
    for (const float top_p : {1e-9f, 0.5f, 1.0f}) {
      for (const int32_t top_k : {0, 1, 1'000'000'000}) {
        for (const float min_p : {0.0f, 0.5f, 1.0f}) {
          SamplingParams params;
          params.temperature = temperature;
          params.top_p = top_p;
          params.top_k = top_k;
          params.min_p = min_p;
          params.logprobs = 3;
          const bool greedy = temperature <= 1e-4f || top_p <= 1e-9f || top_k == 1 || min_p == 1;
          for (int64_t i = 0; i < 20; ++i) {
            const Draw draw = sampler.Sample(logits, params, {}, i);
            ASSERT_FALSE(draw.numeric_fault);
            ASSERT_TRUE(std::isfinite(draw.token.logprob));
            if (greedy) {
              ASSERT_EQ(draw.token.token, best)
                  << temperature << ' ' << top_p << ' ' << top_k << ' ' << min_p;
            }
          }
        }
      }
    }
  }
}

TEST(SamplerTest, ATokenDependsOnSeedIndexAndLogitsAlone) {  // C44
  const std::vector<float> logits = RandomLogits(10);
  SamplingParams params;
  params.seed = 123;
  std::vector<TokenId> alone;
  for (int64_t i = 0; i < 50; ++i) alone.push_back(Drawn(logits, params, {}, i));
  Sampler shared(kVocab, {});
  for (int64_t i = 49; i >= 0; --i) {  // another order, between other rows
    SamplingParams neighbour;
    neighbour.seed = static_cast<uint64_t>(i);
    neighbour.top_k = 3;
    neighbour.logprobs = 2;
    shared.Sample(RandomLogits(100 + static_cast<uint64_t>(i)), neighbour, {}, i);
    EXPECT_EQ(shared.Sample(logits, params, {}, i).token.token, alone[static_cast<size_t>(i)]);
  }
  params.seed = 124;
  std::vector<TokenId> other;
  for (int64_t i = 0; i < 50; ++i) other.push_back(Drawn(logits, params, {}, i));
  EXPECT_NE(other, alone);
}

// 5,000 candidates, of which only the first few hundred are sorted at a time.
TEST(FilterTest, TopPKeepsTheSmallestSetWhateverTheNumberOfCandidates) {
  std::mt19937_64 random(12);
  for (const float p : {0.001f, 0.3f, 0.9f, 0.99999f}) {
    std::vector<Candidate> candidates;
    double total = 0;
    for (TokenId id = 0; id < 5000; ++id) {
      candidates.push_back({id, static_cast<float>(random() % 64) / 16});  // many equal ones
      total += std::exp(static_cast<double>(candidates.back().scaled));
    }
    std::vector<Candidate> sorted = candidates;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Candidate& a, const Candidate& b) { return a.scaled > b.scaled; });
    std::set<TokenId> want;
    double mass = 0;
    for (const Candidate& candidate : sorted) {
      if (mass >= p * total) break;
      want.insert(candidate.token);
      mass += std::exp(static_cast<double>(candidate.scaled));
    }
    KeepTopP(p, candidates);
    std::set<TokenId> got;
    for (const Candidate& candidate : candidates) got.insert(candidate.token);
    EXPECT_EQ(got, want) << p;
  }
}

TEST(SamplerTest, LogprobsAreOfTheRawLogitsWhateverTheRules) {
  std::vector<float> logits(kVocab, 0.0f);
  logits[1] = 2;
  logits[2] = 1;
  SamplingParams params;
  params.temperature = 0.3f;
  params.logit_bias = {{2, 100.0f}};
  params.logprobs = 2;
  Sampler sampler(kVocab, {});
  const SampledToken token = sampler.Sample(logits, params, {}, 0).token;
  const double total = std::log(std::exp(2.0) + std::exp(1.0) + kVocab - 2);
  EXPECT_EQ(token.token, 2);
  EXPECT_EQ(token.rank, 2);
  EXPECT_NEAR(token.logprob, 1 - total, 1e-6);
  ASSERT_EQ(token.top.size(), 2u);
  EXPECT_EQ(token.top[0].token, 1);
  EXPECT_NEAR(token.top[0].logprob, 2 - total, 1e-6);
  EXPECT_EQ(token.top[1].token, 2);
}

TEST(SamplerTest, LogprobsOfZeroGiveTheChosenOneAloneAndNoneGiveNothing) {
  const std::vector<float> logits = RandomLogits(11);
  Sampler sampler(kVocab, {});
  SamplingParams params;
  params.logprobs = 0;
  const SampledToken asked = sampler.Sample(logits, params, {}, 0).token;
  EXPECT_LT(asked.logprob, 0);
  EXPECT_GE(asked.rank, 1);
  EXPECT_TRUE(asked.top.empty());
  params.logprobs = -1;
  const SampledToken none = sampler.Sample(logits, params, {}, 0).token;
  EXPECT_EQ(none.token, asked.token);
  EXPECT_EQ(none.logprob, 0);
  EXPECT_EQ(none.rank, 0);
}

}  // namespace
}  // namespace levin
