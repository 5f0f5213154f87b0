#include "router/inference/request_check.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/demo_model.h"

namespace levin {
namespace {

class RequestCheckTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = testing::DemoModel().release(); }
  static void TearDownTestSuite() { delete model_; }

  RequestCheckTest() { request_.prompt = {1, 2, 3}; }

  Result<PreparedRequest> Prepare() {
    return PrepareRequest(request_, model_->info(), model_->tokenizer(), limits_);
  }
  SamplingParams Sampling() {
    const auto prepared = Prepare();
    EXPECT_TRUE(prepared) << prepared.error().message();
    return prepared ? prepared->generation.sampling : SamplingParams{};
  }
  // "param|reason" of the refusal.
  std::string Refusal() {
    const auto prepared = Prepare();
    if (prepared) return "accepted";
    return prepared.error().param() + '|' + prepared.error().reason();
  }

  static TokenId ByteId(char byte) {
    return testing::ByteIds(*model_, std::string_view(&byte, 1)).at(0);
  }

  static inline const ServedModel* model_ = nullptr;
  InferenceRequest request_;
  RequestLimits limits_{.window = 100, .max_new_tokens = 0, .random_seed = 77, .now_unix_ms = 1000};
};

TEST_F(RequestCheckTest, DefaultsComeFromTheModel) {
  const auto prepared = Prepare();
  ASSERT_TRUE(prepared);
  EXPECT_TRUE(prepared->generation.sampling.greedy());  // the demo's generation_config.json
  EXPECT_EQ(prepared->generation.sampling.seed, 77u);
  EXPECT_EQ(prepared->generation.sampling.stop_ids, (std::vector<TokenId>{1492}));
  EXPECT_EQ(prepared->max_tokens(), 97);  // what is left of the window
  EXPECT_EQ(prepared->generation.deadline_unix_ms, 0);
}

TEST_F(RequestCheckTest, TemperatureIsGreedyBelowItsLeastAndNeverOverflows) {
  request_.temperature = 1e-7;
  request_.top_p = 0.5;
  EXPECT_EQ(Sampling().temperature, 0.0f);
  EXPECT_EQ(Sampling().top_p, 1.0f);
  request_.temperature = 1e-4;
  EXPECT_FLOAT_EQ(Sampling().temperature, 0.01f);
  EXPECT_FLOAT_EQ(Sampling().top_p, 0.5f);
}

TEST_F(RequestCheckTest, FiltersOffAndLargerThanTheVocabularyAreOff) {
  request_.temperature = 1;
  for (int64_t top_k : {int64_t{-1}, int64_t{0}, int64_t{1536}, int64_t{1000000000}}) {
    request_.top_k = top_k;
    EXPECT_EQ(Sampling().top_k, 0) << top_k;
  }
  request_.top_k = 1;
  EXPECT_EQ(Sampling().top_k, 1);
  request_.top_p = 1e-300;  // would be 0 as a float and keep no token
  EXPECT_GT(Sampling().top_p, 0.0f);
}

TEST_F(RequestCheckTest, WhatIsOutOfRangeIsRefusedWithItsName) {
  struct Case {
    const char* refusal;
    void (*set)(InferenceRequest&);
  };
  const Case cases[] = {
      {"temperature|INVALID_FIELD", [](InferenceRequest& r) { r.temperature = 2.1; }},
      {"temperature|INVALID_FIELD", [](InferenceRequest& r) { r.temperature = -1; }},
      {"temperature|INVALID_FIELD",
       [](InferenceRequest& r) { r.temperature = std::numeric_limits<double>::quiet_NaN(); }},
      {"top_p|INVALID_FIELD", [](InferenceRequest& r) { r.top_p = 0; }},
      {"top_p|INVALID_FIELD", [](InferenceRequest& r) { r.top_p = 1.1; }},
      {"min_p|INVALID_FIELD", [](InferenceRequest& r) { r.min_p = 2; }},
      {"frequency_penalty|INVALID_FIELD", [](InferenceRequest& r) { r.frequency_penalty = 3; }},
      {"presence_penalty|INVALID_FIELD", [](InferenceRequest& r) { r.presence_penalty = -3; }},
      {"repetition_penalty|INVALID_FIELD", [](InferenceRequest& r) { r.repetition_penalty = 0; }},
      {"repetition_penalty|INVALID_FIELD",
       [](InferenceRequest& r) { r.repetition_penalty = 1e39; }},
      {"repetition_penalty|INVALID_FIELD",
       [](InferenceRequest& r) { r.repetition_penalty = 1e-40; }},
      {"repetition_penalty|INVALID_FIELD",
       [](InferenceRequest& r) { r.repetition_penalty = 1.1e6; }},
      {"top_k|INVALID_FIELD", [](InferenceRequest& r) { r.top_k = -2; }},
      {"n|INVALID_FIELD", [](InferenceRequest& r) { r.n = 0; }},
      {"n|INVALID_FIELD", [](InferenceRequest& r) { r.n = 17; }},
      {"n|UNSUPPORTED_PARAMETER", [](InferenceRequest& r) { r.n = 2; }},
      {"max_tokens|INVALID_FIELD", [](InferenceRequest& r) { r.max_tokens = 0; }},
      {"max_tokens|INVALID_FIELD", [](InferenceRequest& r) { r.max_tokens = -1; }},
      {"min_tokens|INVALID_FIELD", [](InferenceRequest& r) { r.min_tokens = 98; }},
      {"logprobs|INVALID_FIELD", [](InferenceRequest& r) { r.logprobs = 21; }},
      {"logit_bias.1536|INVALID_FIELD",
       [](InferenceRequest& r) {
         r.logit_bias = {{1536, 1}};
       }},
      {"logit_bias.-1|INVALID_FIELD",
       [](InferenceRequest& r) {
         r.logit_bias = {{-1, 1}};
       }},
      {"logit_bias.5|INVALID_FIELD",
       [](InferenceRequest& r) {
         r.logit_bias = {{5, 101}};
       }},
      {"allowed_token_ids|INVALID_FIELD",
       [](InferenceRequest& r) { r.allowed_token_ids.emplace(); }},
      {"allowed_token_ids|INVALID_FIELD",  // a row of the head that is no token
       [](InferenceRequest& r) { r.allowed_token_ids = {1535}; }},
      {"bad_words[0]|INVALID_FIELD", [](InferenceRequest& r) { r.bad_words = {""}; }},
      {"stop|INVALID_FIELD",
       [](InferenceRequest& r) {
         r.stop = {"a", ""};
       }},
      {"stop|INVALID_FIELD", [](InferenceRequest& r) { r.stop.assign(33, "a"); }},
      {"stop_token_ids|INVALID_FIELD", [](InferenceRequest& r) { r.stop_token_ids = {1536}; }},
      {"prompt|INVALID_FIELD", [](InferenceRequest& r) { r.prompt = {}; }},
      {"prompt|INVALID_FIELD", [](InferenceRequest& r) { r.prompt = {1536}; }},
      {"prompt|INVALID_FIELD", [](InferenceRequest& r) { r.prompt = {-1}; }},
      {"truncate_prompt_tokens|INVALID_FIELD",
       [](InferenceRequest& r) { r.truncate_prompt_tokens = 0; }},
      {"truncate_prompt_tokens|INVALID_FIELD",
       [](InferenceRequest& r) { r.truncate_prompt_tokens = 101; }},
  };
  for (const Case& one : cases) {
    request_ = {};
    request_.prompt = {1, 2, 3};
    one.set(request_);
    EXPECT_EQ(Refusal(), one.refusal);
  }
}

TEST_F(RequestCheckTest, TheMessageStatesTheRangeAndWhatCame) {
  request_.temperature = 2.5;
  EXPECT_EQ(Prepare().error().message(), "temperature must be between 0 and 2, got 2.5");
}

TEST_F(RequestCheckTest, TheLastIdOfTheVocabularyIsAllowed) {
  request_.logit_bias = {{1535, -100}};
  request_.stop_token_ids = {1535, 1492};
  EXPECT_EQ(Sampling().logit_bias.size(), 1u);
  EXPECT_EQ(Sampling().stop_ids, (std::vector<TokenId>{1492, 1535}));
}

TEST_F(RequestCheckTest, IgnoreEosLeavesTheClientsStopIds) {
  request_.ignore_eos = true;
  request_.stop_token_ids = {5};
  EXPECT_EQ(Sampling().stop_ids, (std::vector<TokenId>{5}));
  EXPECT_FALSE(Prepare()->eos);
}

TEST_F(RequestCheckTest, AnExplicitLengthIsNeverClamped) {
  request_.max_tokens = 97;
  EXPECT_EQ(Prepare()->max_tokens(), 97);
  request_.max_tokens = 98;
  EXPECT_EQ(Refusal(), "prompt|CONTEXT_LENGTH_EXCEEDED");
  EXPECT_EQ(Prepare().error().message(),
            "This model's maximum context length is 100 tokens. However, you requested 101 tokens "
            "(3 in the prompt, 98 in the completion). Please reduce the length of the prompt or "
            "completion.");
  request_.max_tokens = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Refusal(), "prompt|CONTEXT_LENGTH_EXCEEDED");
}

TEST_F(RequestCheckTest, APromptThatLeavesNoRoomIsTooLong) {
  request_.prompt.assign(99, 1);
  EXPECT_EQ(Prepare()->max_tokens(), 1);
  request_.prompt.assign(100, 1);
  EXPECT_EQ(Refusal(), "prompt|CONTEXT_LENGTH_EXCEEDED");
  request_.max_tokens_least = 0;
  request_.max_tokens = 0;  // prefill only fits
  EXPECT_EQ(Prepare()->max_tokens(), 0);
}

TEST_F(RequestCheckTest, TheServersOwnCapRefusesAndBoundsTheDefault) {
  limits_.max_new_tokens = 10;
  EXPECT_EQ(Prepare()->max_tokens(), 10);
  request_.max_tokens = 11;
  EXPECT_EQ(Refusal(), "max_tokens|INVALID_FIELD");
}

TEST_F(RequestCheckTest, TruncationKeepsTheTail) {
  request_.truncate_prompt_tokens = 2;
  EXPECT_EQ(Prepare()->generation.prompt, (std::vector<TokenId>{2, 3}));
  request_.truncate_prompt_tokens = -1;
  EXPECT_EQ(Prepare()->prompt_tokens(), 3);
}

TEST_F(RequestCheckTest, BadWordsAreForbiddenBareAndBehindASpace) {
  request_.bad_words = {" you"};
  const auto sequences = Sampling().bad_sequences;
  ASSERT_FALSE(sequences.empty());
  const auto ids = [&](std::string_view text) {
    return model_->tokenizer().Encode(text, SpecialTokens::kPlainText);
  };
  EXPECT_EQ(sequences.front(), ids("you"));
  if (ids("you").size() == ids(" you").size()) {
    ASSERT_EQ(sequences.size(), 2u);
    EXPECT_EQ(sequences.back(), ids(" you"));
  }
}

TEST_F(RequestCheckTest, AllowedTokensOfWhichNoneCouldBeDrawnAreRefused) {
  const TokenId a = ByteId('A');
  const TokenId b = ByteId('B');
  const TokenId eos = model_->info().eos;
  request_.allowed_token_ids = {a};
  request_.bad_words = {"A"};
  EXPECT_EQ(Refusal(), "allowed_token_ids|INVALID_FIELD");
  request_.allowed_token_ids = {a, b};
  EXPECT_EQ(Refusal(), "accepted");

  request_.bad_words = {};
  request_.allowed_token_ids = {eos};
  EXPECT_EQ(Refusal(), "accepted");
  request_.min_tokens = 5;
  EXPECT_EQ(Refusal(), "allowed_token_ids|INVALID_FIELD");
  request_.allowed_token_ids = {eos, a};
  EXPECT_EQ(Refusal(), "accepted");
  request_.stop_token_ids = {a};
  EXPECT_EQ(Refusal(), "allowed_token_ids|INVALID_FIELD");
  request_.stop_token_ids = {};
  request_.bad_words = {"A"};  // one by each rule
  EXPECT_EQ(Refusal(), "allowed_token_ids|INVALID_FIELD");
}

TEST_F(RequestCheckTest, ABadWordOfTooManyTokensIsNamed) {
  std::string word;
  for (int i = 0; i < 3000; ++i) word += "x1";
  request_.bad_words = {"fine", word};
  EXPECT_EQ(Refusal(), "bad_words[1]|INVALID_FIELD");
  request_.bad_words = {std::string(10'000'000, 'x')};
  EXPECT_EQ(Refusal(), "bad_words[0]|INVALID_FIELD");
}

TEST_F(RequestCheckTest, TheEarlierDeadlineCounts) {
  request_.timeout_ms = 500;
  limits_.timeout_ms = 200;
  EXPECT_EQ(Prepare()->generation.deadline_unix_ms, 1200);
  limits_.timeout_ms = 0;
  EXPECT_EQ(Prepare()->generation.deadline_unix_ms, 1500);
}

TEST_F(RequestCheckTest, ANegativeSeedIsAsGoodAsAnyOther) {
  request_.seed = -1;
  EXPECT_EQ(Sampling().seed, std::numeric_limits<uint64_t>::max());
}

}  // namespace
}  // namespace levin
