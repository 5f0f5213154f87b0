#include <gtest/gtest.h>

#include "tests/router/api/api_fixture.h"

namespace levin::testing {
namespace {

using CompletionTest = ApiTest;

TEST_F(CompletionTest, AWholeReplyHasItsShapeAndSixteenTokensByDefault) {
  engine_.Answer(Text("a b c d e f g h i j k l m n o p q r s t u v w x y z a b c", false));
  const auto reply = Complete();
  ASSERT_EQ(reply->status(), 200) << reply->body();
  EXPECT_EQ(reply->Header("x-levin-max-tokens"), "16");
  const value body = Json(reply);
  EXPECT_EQ(Str(body.at("object")), "text_completion");
  EXPECT_TRUE(Str(body.at("id")).starts_with("cmpl-"));
  const value& choice = body.at("choices").as_array()[0];
  EXPECT_EQ(Str(choice.at("finish_reason")), "length");
  EXPECT_TRUE(choice.at("logprobs").is_null());
  EXPECT_EQ(body.at("usage").at("completion_tokens").as_int64(), 16);
}

TEST_F(CompletionTest, TextAndItsIdsAreTheSamePrompt) {
  const std::vector<TokenId> ids = DemoIds(*model_, "hi <end_of_sentence>");
  Complete(R"("prompt":"hi <end_of_sentence>")");
  std::string list;
  for (TokenId id : ids) list += (list.empty() ? "" : ",") + std::to_string(id);
  Complete(R"("prompt":[)" + list + "]");
  Complete(R"("prompt":[[)" + list + "]]");
  Complete(R"("prompt":["hi <end_of_sentence>"])");
  ASSERT_EQ(engine_.submitted().size(), 4u);
  for (const Generation& generation : engine_.submitted()) EXPECT_EQ(generation.prompt, ids);
  EXPECT_EQ(ids.back(), model_->info().eos) << "raw prompts parse special tokens";
}

TEST_F(CompletionTest, SeveralPromptsAreSeveralChoices) {
  for (const char* stream : {"false", "true"}) {
    engine_.Answer(Text("one"));
    engine_.Answer(Text("two three four", false));
    engine_.Answer(Text("three"));
    const auto reply = Complete(
        std::string(R"("prompt":["a","b","c"],"max_tokens":3,"stream_options":null,"stream":)") +
        stream);
    std::vector<std::string> texts(3), finishes(3);
    if (stream == std::string_view("true")) {
      for (const value& chunk : Chunks(reply->body())) {
        for (const value& choice : chunk.at("choices").as_array()) {
          const int64_t index = choice.at("index").as_int64();
          texts[index] += Str(choice.at("text"));
          if (!choice.at("finish_reason").is_null()) {
            finishes[index] += Str(choice.at("finish_reason"));
          }
        }
      }
    } else {
      const value body = Json(reply);
      for (const value& choice : body.at("choices").as_array()) {
        texts[choice.at("index").as_int64()] = Str(choice.at("text"));
        finishes[choice.at("index").as_int64()] = Str(choice.at("finish_reason"));
      }
      int64_t prompts = 0;
      for (const Generation& generation : engine_.submitted()) {
        prompts += static_cast<int64_t>(generation.prompt.size());
      }
      EXPECT_EQ(body.at("usage").at("prompt_tokens").as_int64(), prompts);
    }
    EXPECT_EQ(texts[0], "one");
    EXPECT_TRUE(texts[1].starts_with("two"));
    EXPECT_EQ(texts[2], "three");
    EXPECT_EQ(finishes, (std::vector<std::string>{"stop", "length", "stop"}));
  }
}

TEST_F(CompletionTest, OneFailedPromptEndsThemAll) {
  engine_.Answer(FakeEngineClient::Failure(Internal("boom")));
  engine_.Answer(Endless());
  EXPECT_EQ(ErrorOf(Complete(R"("prompt":["a","b"])")), "500 server_error internal_error -");
  EXPECT_EQ(engine_.live(), 0);

  engine_.AnswerAllWith(Endless());
  const auto reply = Post("/v1/completions", R"({"prompt":["a","b"]})");
  engine_.Step();
  reply->Leave();
  engine_.RunToEnd();
  EXPECT_EQ(engine_.live(), 0);
}

TEST_F(CompletionTest, ASubmitRefusedHalfWayCancelsTheRest) {
  engine_.AnswerAllWith(Endless());
  const auto first = Post("/v1/completions", R"({"prompt":"a"})");
  engine_.RefuseNext(
      Status(Code::kResourceExhausted, "QUEUE_FULL", "queue full").WithRetryAfterMs(90'000));
  const auto reply = Post("/v1/completions", R"({"prompt":["a","b"]})");
  EXPECT_EQ(ErrorOf(reply), "429 rate_limit_error rate_limit_exceeded -");
  EXPECT_EQ(reply->Header("retry-after"), "60");
  EXPECT_EQ(engine_.live(), 1);
  first->Leave();
  engine_.RunToEnd();
}

TEST_F(CompletionTest, EchoBeginsTheTextWithThePrompt) {
  engine_.AnswerAllWith(Text(" there"));
  EXPECT_EQ(
      Str(Json(Complete(R"("prompt":"Hello","echo":true)")).at("choices").as_array()[0].at("text")),
      "Hello there");
  std::string text;
  for (const value& chunk :
       Chunks(Complete(R"("prompt":"Hello","echo":true,"stream":true)")->body())) {
    text += Str(chunk.at("choices").as_array()[0].at("text"));
  }
  EXPECT_EQ(text, "Hello there");
  const value nothing =
      Json(Complete(R"("prompt":"Hello","echo":true,"max_tokens":0)")).at("choices").as_array()[0];
  EXPECT_EQ(Str(nothing.at("text")), "Hello");
  EXPECT_EQ(Str(nothing.at("finish_reason")), "length");
}

TEST_F(CompletionTest, LogprobsAreFourArraysOfEqualLength) {
  auto script = BytesOf("aé");
  for (SampledToken& token : script.tokens) {
    token.logprob = -1.5f;
    token.top = {{7, -0.5f}, {8, -1.0f}};
  }
  engine_.AnswerAllWith(script);
  const value logprobs =
      Json(Complete(R"("prompt":"x","logprobs":2)")).at("choices").as_array()[0].at("logprobs");
  for (const char* key : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
    EXPECT_EQ(logprobs.at(key).as_array().size(), 4u) << key;
  }
  EXPECT_EQ(boost::json::serialize(logprobs.at("text_offset")), "[0,1,1,2]");
  EXPECT_EQ(Str(logprobs.at("tokens").as_array()[1]), "\xEF\xBF\xBD");
  const object& top = logprobs.at("top_logprobs").as_array()[0].as_object();
  EXPECT_EQ(top.size(), 3u);  // the two best and the drawn one
  EXPECT_EQ(top.at("a").as_double(), -1.5);

  array offsets;
  for (const value& chunk :
       Chunks(Complete(R"("prompt":"x","logprobs":2,"stream":true)")->body())) {
    const value& part = chunk.at("choices").as_array()[0].at("logprobs");
    if (part.is_null()) continue;
    for (const value& offset : part.at("text_offset").as_array()) offsets.push_back(offset);
  }
  EXPECT_EQ(boost::json::serialize(offsets), "[0,1,1,2]");

  const value as_ids =
      Json(Complete(R"("prompt":"x","logprobs":0,"return_tokens_as_token_ids":true)"));
  EXPECT_TRUE(Str(as_ids.at("choices").as_array()[0].at("logprobs").at("tokens").as_array()[0])
                  .starts_with("token_id:"));
}

TEST_F(CompletionTest, StringsThatCollideKeepTheBetterLogprob) {
  // Two tokens that are each a part of a character are spelled alike.
  const std::vector<TokenId> parts = ByteIds(*model_, "é");
  auto script = FakeEngineClient::Tokens({parts[0]});
  script.tokens[0].logprob = -0.25f;
  script.tokens[0].top = {{parts[0], -0.25f}, {parts[1], -3.0f}};
  engine_.Answer(script);
  const value logprobs = Json(Complete(R"("prompt":"x","max_tokens":1,"logprobs":2)"))
                             .at("choices")
                             .as_array()[0]
                             .at("logprobs");
  const object& top = logprobs.at("top_logprobs").as_array()[0].as_object();
  ASSERT_EQ(top.size(), 1u);
  EXPECT_EQ(top.begin()->value().as_double(), -0.25);
  EXPECT_EQ(logprobs.at("token_logprobs").as_array()[0].as_double(), -0.25);
}

TEST_F(CompletionTest, AStreamHasNoRoleAndItsUsageAtTheEnd) {
  engine_.Answer(Text("Hello there"));
  const auto chunks = Chunks(
      Complete(R"("prompt":"x","stream":true,"stream_options":{"include_usage":true})")->body());
  std::string text;
  for (size_t i = 0; i + 1 < chunks.size(); ++i) {
    const value& choice = chunks[i].at("choices").as_array()[0];
    EXPECT_EQ(Str(chunks[i].at("object")), "text_completion");
    EXPECT_FALSE(choice.as_object().contains("delta"));
    EXPECT_EQ(choice.at("finish_reason").is_null(), i + 2 < chunks.size());
    text += Str(choice.at("text"));
  }
  EXPECT_EQ(text, "Hello there");
  EXPECT_TRUE(chunks.back().at("choices").as_array().empty());
}

TEST_F(CompletionTest, PromptsThatAreNoneAreRefused) {
  for (const char* prompt : {R"("")", "[]", "[[]]", R"([""])", R"(["a",""])"}) {
    const std::string error = ErrorOf(Complete(std::string(R"("prompt":)") + prompt));
    EXPECT_TRUE(error.starts_with("400 invalid_request_error invalid_value prompt"))
        << prompt << " " << error;
  }
  EXPECT_EQ(ErrorOf(Complete(R"("max_tokens":1)")),
            "400 invalid_request_error missing_required_parameter prompt");
  EXPECT_EQ(ErrorOf(Complete(R"("prompt":7)")), "400 invalid_request_error invalid_type prompt");
  EXPECT_EQ(ErrorOf(Complete(R"("prompt":[1,"a"])")),
            "400 invalid_request_error invalid_type prompt[1]");
  EXPECT_EQ(ErrorOf(Complete(R"("prompt":[-1])")),
            "400 invalid_request_error invalid_value prompt[0]");
  EXPECT_EQ(ErrorOf(Complete(R"("prompt":[1536])")),
            "400 invalid_request_error invalid_value prompt");
}

}  // namespace
}  // namespace levin::testing
