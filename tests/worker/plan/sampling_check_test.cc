#include "worker/plan/sampling_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

namespace levin {
namespace {

constexpr int32_t kVocab = 100;

Status Check(const std::function<void(SamplingParams&)>& change) {
  SamplingParams params;
  change(params);
  return CheckSampling(params, kVocab);
}

TEST(SamplingCheckTest, AcceptsTheDefaultsAndTheEdgesOfTheRanges) {
  EXPECT_TRUE(Check([](SamplingParams&) {}).ok());
  EXPECT_TRUE(Check([](SamplingParams& p) {
                p.temperature = 0;
                p.min_p = 1;
                p.top_p = 1e-6f;
                p.stop_ids = {0, kVocab - 1};
                p.logit_bias = {{99, -100.0f}};
                p.bad_sequences = {{1, 2}, {3}};
                p.logprobs = kVocab;
              }).ok());
}

TEST(SamplingCheckTest, RefusesNumbersOutOfRangeAndNotANumber) {
  for (float bad : {-1.0f, NAN, INFINITY}) {
    EXPECT_FALSE(Check([&](SamplingParams& p) { p.temperature = bad; }).ok());
    EXPECT_FALSE(Check([&](SamplingParams& p) { p.top_p = bad; }).ok());
    EXPECT_FALSE(Check([&](SamplingParams& p) { p.min_p = bad; }).ok());
    EXPECT_FALSE(Check([&](SamplingParams& p) { p.repetition_penalty = bad; }).ok());
  }
  EXPECT_FALSE(Check([](SamplingParams& p) { p.top_p = 0; }).ok());
  EXPECT_FALSE(Check([](SamplingParams& p) { p.repetition_penalty = 0; }).ok());
  EXPECT_FALSE(Check([](SamplingParams& p) { p.frequency_penalty = NAN; }).ok());
  EXPECT_FALSE(Check([](SamplingParams& p) { p.presence_penalty = INFINITY; }).ok());
  EXPECT_FALSE(Check([](SamplingParams& p) { p.top_k = -1; }).ok());
  EXPECT_FALSE(Check([](SamplingParams& p) { p.min_tokens = -1; }).ok());
  EXPECT_FALSE(Check([](SamplingParams& p) { p.logprobs = -2; }).ok());
  EXPECT_FALSE(Check([](SamplingParams& p) { p.logprobs = kVocab + 1; }).ok());
  EXPECT_FALSE(Check([](SamplingParams& p) { p.logit_bias = {{1, NAN}}; }).ok());
}

TEST(SamplingCheckTest, RefusesIdsOutsideTheVocabularyAndNamesThem) {
  for (TokenId bad : {-1, kVocab}) {
    EXPECT_FALSE(Check([&](SamplingParams& p) { p.stop_ids = {1, bad}; }).ok());
    EXPECT_FALSE(Check([&](SamplingParams& p) { p.allowed_ids = {bad}; }).ok());
    EXPECT_FALSE(Check([&](SamplingParams& p) { p.bad_sequences = {{1, bad}}; }).ok());
    EXPECT_FALSE(Check([&](SamplingParams& p) { p.logit_bias = {{bad, 1.0f}}; }).ok());
  }
  const Status status = Check([](SamplingParams& p) { p.stop_ids = {123}; });
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.param(), "stop_ids");
  EXPECT_NE(status.message().find("123"), std::string::npos);
}

TEST(SamplingCheckTest, RefusesAnEmptyBadSequenceAndEndlessLists) {
  EXPECT_FALSE(Check([](SamplingParams& p) { p.bad_sequences = {{}}; }).ok());
  EXPECT_FALSE(Check([](SamplingParams& p) { p.stop_ids.assign(5000, 1); }).ok());
  EXPECT_FALSE(Check([](SamplingParams& p) { p.allowed_ids.assign(kVocab + 1, 1); }).ok());
}

}  // namespace
}  // namespace levin
