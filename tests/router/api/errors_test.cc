// What is wrong with a request, and what the client is told (api.md 3, 9).
#include <gtest/gtest.h>

#include <chrono>

#include "router/api/error_reply.h"
#include "tests/router/api/api_fixture.h"

namespace levin::testing {
namespace {

class ErrorsTest : public ApiTest {
 protected:
  std::string ChatError(const std::string& more) { return ErrorOf(Chat(more)); }
  std::string BodyError(std::string body) {
    return ErrorOf(Post("/v1/chat/completions", std::move(body)));
  }
};

TEST(ErrorTableTest, EveryReasonHasItsRow) {
  struct Row {
    Code code;
    const char* reason;
    int http;
    const char* type_and_code;
  };
  const Row rows[] = {
      {Code::kInvalidArgument, "INVALID_JSON", 400, "invalid_request_error invalid_json"},
      {Code::kInvalidArgument, "MISSING_REQUIRED_PARAMETER", 400,
       "invalid_request_error missing_required_parameter"},
      {Code::kInvalidArgument, "INVALID_TYPE", 400, "invalid_request_error invalid_type"},
      {Code::kInvalidArgument, "INVALID_FIELD", 400, "invalid_request_error invalid_value"},
      {Code::kInvalidArgument, "INVALID_SCHEMA", 400, "invalid_request_error invalid_schema"},
      {Code::kInvalidArgument, "UNSUPPORTED_PARAMETER", 400,
       "invalid_request_error unsupported_parameter"},
      {Code::kInvalidArgument, "CONTEXT_LENGTH_EXCEEDED", 400,
       "invalid_request_error context_length_exceeded"},
      {Code::kInvalidArgument, "CACHE_NEVER_FITS", 400,
       "invalid_request_error context_length_exceeded"},
      {Code::kInvalidArgument, "TEMPLATE_ERROR", 400, "invalid_request_error template_error"},
      {Code::kInvalidArgument, "", 400, "invalid_request_error invalid_value"},
      {Code::kUnauthenticated, "", 401, "invalid_request_error invalid_api_key"},
      {Code::kPermissionDenied, "", 403, "invalid_request_error permission_denied"},
      {Code::kNotFound, "MODEL_NOT_FOUND", 404, "invalid_request_error model_not_found"},
      {Code::kNotFound, "UNKNOWN_URL", 404, "invalid_request_error unknown_url"},
      {Code::kUnimplemented, "METHOD_NOT_ALLOWED", 405, "invalid_request_error method_not_allowed"},
      {Code::kAlreadyExists, "GENERATION_EXISTS", 409, "invalid_request_error generation_exists"},
      {Code::kResourceExhausted, "REQUEST_TOO_LARGE", 413,
       "invalid_request_error request_too_large"},
      {Code::kInvalidArgument, "UNSUPPORTED_MEDIA_TYPE", 415,
       "invalid_request_error unsupported_media_type"},
      {Code::kResourceExhausted, "QUEUE_FULL", 429, "rate_limit_error rate_limit_exceeded"},
      {Code::kResourceExhausted, "", 429, "rate_limit_error rate_limit_exceeded"},
      {Code::kCancelled, "CANCELLED", 499, "invalid_request_error request_cancelled"},
      {Code::kInternal, "INTERNAL", 500, "server_error internal_error"},
      {Code::kInternal, "NUMERIC_FAULT", 500, "server_error internal_error"},
      {Code::kAborted, "ENGINE_RESTARTED", 500, "server_error internal_error"},
      {Code::kUnknown, "", 500, "server_error internal_error"},
      {Code::kDataLoss, "", 500, "server_error internal_error"},
      {Code::kUnimplemented, "UNSUPPORTED", 501, "server_error not_implemented"},
      {Code::kUnavailable, "MODEL_LOADING", 503, "server_error service_unavailable"},
      {Code::kUnavailable, "DRAINING", 503, "server_error service_unavailable"},
      {Code::kUnavailable, "NO_GROUP", 503, "server_error service_unavailable"},
      {Code::kUnavailable, "QUEUE_TIMEOUT", 503, "server_error service_unavailable"},
      {Code::kUnavailable, "EPOCH_ENDED", 503, "server_error service_unavailable"},
      {Code::kDeadlineExceeded, "DEADLINE_EXCEEDED", 504, "timeout_error deadline_exceeded"},
  };
  for (const Row& row : rows) {
    const Status status(row.code, row.reason, "what happened");
    EXPECT_EQ(HttpStatusOf(status), row.http) << row.reason;
    const value error = boost::json::parse(ErrorBody(status, "id-1")).at("error");
    EXPECT_EQ(Str(error.at("type")) + ' ' + Str(error.at("code")), row.type_and_code) << row.reason;
    const std::string message = Str(error.at("message"));
    if (row.http == 500) {
      EXPECT_NE(message.find("id-1"), std::string::npos);
      EXPECT_EQ(message.find("what happened"), std::string::npos);
    } else {
      EXPECT_EQ(message, "what happened");
    }
  }
}

TEST(ErrorTableTest, ANumericFaultIsNotToBeTriedAgain) {
  const HttpResponse response = ErrorResponse(Status(Code::kInternal, "NUMERIC_FAULT", "x"), "i");
  EXPECT_NE(std::find(response.headers.begin(), response.headers.end(),
                      std::pair<std::string, std::string>("x-should-retry", "false")),
            response.headers.end());
}

TEST_F(ErrorsTest, WhatIsNoJsonObjectIsRefusedAndTheNextRequestWorks) {
  const std::string kInvalid = "400 invalid_request_error invalid_json -";
  const std::string bodies[] = {
      "",
      "{:",
      R"({"messages": [)",
      "[1]",
      "\"text\"",
      "7",
      "null",
      R"({"messages": 1e999})",
      R"({"a": {"b": [1e400]}})",
      "\xEF\xBB\xBF{}",                      // a byte order mark
      std::string("{\"a\": \"x\0y\"}", 12),  // a raw NUL
      "{\"a\": \"\xC4\xE3\"}",               // GBK
      "{\"a\": \"\x80\"}",                   // a lone continuation byte
      R"({"a": "\ud800"})",                  // a lone surrogate
      R"({"a": "\udc00x"})",
      "{} {}",
      R"({"messages": NaN})",
  };
  for (const std::string& body : bodies) EXPECT_EQ(BodyError(body), kInvalid) << body;
  engine_.Answer(Text("ok"));
  EXPECT_EQ(Chat()->status(), 200);
}

TEST_F(ErrorsTest, DeepNestingIsRefusedQuicklyWithTheLimit) {
  for (const size_t depth : {size_t{2000}, size_t{200'000}}) {
    for (const char* field : {"tools", "response_format", "metadata", "nobody_knows"}) {
      for (const char* bracket : {"[", "{\"a\":"}) {
        std::string body =
            R"({"messages":[{"role":"user","content":"hi"}],")" + std::string(field) + "\":";
        for (size_t i = 0; i < depth; ++i) body += bracket;
        const auto start = std::chrono::steady_clock::now();
        const auto reply = Post("/v1/chat/completions", body);
        EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(100));
        EXPECT_EQ(ErrorOf(reply), "400 invalid_request_error invalid_json -");
        EXPECT_NE(MessageOf(reply).find("128"), std::string::npos);
      }
    }
  }
}

TEST_F(ErrorsTest, ADuplicateKeysLastValueCounts) {
  engine_.AnswerAllWith(Text("a b c d"));
  EXPECT_EQ(Chat(R"("max_tokens":4,"max_tokens":1)")->Header("x-levin-max-tokens"), "1");
}

TEST_F(ErrorsTest, WrongTypesAreNamedByTheirPath) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("temperature":"1")", "temperature"},
      {R"("temperature":true)", "temperature"},
      {R"("top_p":[1])", "top_p"},
      {R"("top_k":1.5)", "top_k"},
      {R"("top_k":"10")", "top_k"},
      {R"("min_p":{})", "min_p"},
      {R"("frequency_penalty":"x")", "frequency_penalty"},
      {R"("presence_penalty":false)", "presence_penalty"},
      {R"("repetition_penalty":"x")", "repetition_penalty"},
      {R"("seed":1.5)", "seed"},
      {R"("n":"2")", "n"},
      {R"("max_tokens":"5")", "max_tokens"},
      {R"("max_tokens":1.5)", "max_tokens"},
      {R"("max_completion_tokens":"5")", "max_completion_tokens"},
      {R"("min_tokens":"5")", "min_tokens"},
      {R"("stop":5)", "stop"},
      {R"("stop":["a",5])", "stop[1]"},
      {R"("stop_token_ids":"5")", "stop_token_ids"},
      {R"("stop_token_ids":["5"])", "stop_token_ids[0]"},
      {R"("ignore_eos":1)", "ignore_eos"},
      {R"("include_stop_str_in_output":"yes")", "include_stop_str_in_output"},
      {R"("skip_special_tokens":0)", "skip_special_tokens"},
      {R"("logit_bias":[1])", "logit_bias"},
      {R"("logit_bias":{"5":"1"})", "logit_bias.5"},
      {R"("allowed_token_ids":5)", "allowed_token_ids"},
      {R"("bad_words":"x")", "bad_words"},
      {R"("logprobs":1)", "logprobs"},
      {R"("logprobs":true,"top_logprobs":"3")", "top_logprobs"},
      {R"("stream":"true")", "stream"},
      {R"("stream":true,"stream_options":[])", "stream_options"},
      {R"("stream":true,"stream_options":{"include_usage":1})", "stream_options.include_usage"},
      {R"("model":5)", "model"},
      {R"("tools":{})", "tools"},
      {R"("tools":["x"])", "tools[0]"},
      {R"("tools":[{"type":"function","function":{"name":5}}])", "tools[0].function.name"},
      {R"("tools":[{"type":5,"function":{"name":"f"}}])", "tools[0].type"},
      {R"("tools":[{"type":"function","function":{"name":"f","parameters":[]}}])",
       "tools[0].function.parameters"},
      {R"("tools":[{"name":"f","parameters":"x"}])", "tools[0].parameters"},
      {R"("parallel_tool_calls":"x")", "parallel_tool_calls"},
      {R"("include_reasoning":"x")", "include_reasoning"},
      {R"("continue_final_message":"x")", "continue_final_message"},
      {R"("add_generation_prompt":1)", "add_generation_prompt"},
      {R"("chat_template_kwargs":[])", "chat_template_kwargs"},
      {R"("return_token_ids":1)", "return_token_ids"},
      {R"("request_id":5)", "request_id"},
      {R"("truncate_prompt_tokens":"5")", "truncate_prompt_tokens"},
  };
  for (const auto& [field, param] : cases) {
    EXPECT_EQ(ChatError(field), std::string("400 invalid_request_error invalid_type ") + param)
        << field;
  }
}

TEST_F(ErrorsTest, ValuesOutOfRangeAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("temperature":2.1)", "temperature"},
      {R"("temperature":-1)", "temperature"},
      {R"("top_p":0)", "top_p"},
      {R"("min_p":2)", "min_p"},
      {R"("frequency_penalty":3)", "frequency_penalty"},
      {R"("presence_penalty":3)", "presence_penalty"},
      {R"("repetition_penalty":0)", "repetition_penalty"},
      {R"("n":0)", "n"},
      {R"("n":17)", "n"},
      {R"("n":1000000000)", "n"},
      {R"("top_k":-2)", "top_k"},
      {R"("max_tokens":-1)", "max_tokens"},
      {R"("max_tokens":0)", "max_tokens"},
      {R"("max_tokens":9223372036854775808)", "max_tokens"},
      {R"("max_completion_tokens":0)", "max_completion_tokens"},
      {R"("seed":9223372036854775808)", "seed"},
      {R"("seed":1e300)", "seed"},
      {R"("seed":-9223372036854775809)", "seed"},  // as a double it is -2^63
      {R"("seed":-1e300)", "seed"},
      {R"("repetition_penalty":1e-40)", "repetition_penalty"},
      {R"("stop":"")", "stop"},
      {R"("stop":[""])", "stop"},
      {R"("logit_bias":{"1536":1})", "logit_bias.1536"},
      {R"("logit_bias":{"-1":1})", "logit_bias.-1"},
      {R"("logit_bias":{"1099511627776":1})", "logit_bias.1099511627776"},
      {R"("logit_bias":{"abc":1})", "logit_bias.abc"},
      {R"("logit_bias":{"1.5":1})", "logit_bias.1.5"},
      {R"("logit_bias":{"7":101})", "logit_bias.7"},
      {R"("logit_bias":{"7":-101})", "logit_bias.7"},
      {R"("allowed_token_ids":[])", "allowed_token_ids"},
      {R"("bad_words":[""])", "bad_words[0]"},
      {R"("logprobs":true,"top_logprobs":21)", "top_logprobs"},
      {R"("logprobs":true,"top_logprobs":-1)", "top_logprobs"},
      {R"("top_logprobs":2)", "top_logprobs"},
      {R"("top_logprobs":-1)", "top_logprobs"},
      {R"("stream_options":{"include_usage":true})", "stream_options"},
      {R"("tools":[{"name":"a b"}])", "tools[0].name"},
      {R"("tools":[{"type":"x","function":{"name":"f"}}])", "tools[0].type"},
      {R"("tools":[{"name":"f"},{"type":"","name":"g"}])", "tools[1].type"},
      {R"("tool_choice":"auto")", "tool_choice"},
      {R"("tool_choice":"required")", "tool_choice"},
      {R"("tool_choice":"sometimes")", "tool_choice"},
      {R"("tools":[{"name":"f"}],"tool_choice":{"type":"function","function":{"name":"g"}})",
       "tool_choice"},
      {R"("cache_salt":"")", "cache_salt"},
      {R"("continue_final_message":true,"add_generation_prompt":true)", "add_generation_prompt"},
  };
  for (const auto& [field, param] : cases) {
    EXPECT_EQ(ChatError(field), std::string("400 invalid_request_error invalid_value ") + param)
        << field;
  }
  EXPECT_EQ(MessageOf(Chat(R"("temperature":2.5)")),
            "temperature must be between 0 and 2, got 2.5");
}

TEST_F(ErrorsTest, TheLeastIntegerIsTakenAndTheNextBelowIsRefusedWithTheRange) {
  engine_.AnswerAllWith(Text("x"));
  EXPECT_EQ(Chat(R"("seed":-9223372036854775808)")->status(), 200);
  EXPECT_EQ(MessageOf(Chat(R"("seed":-9223372036854775809)")),
            "seed must be an integer from -2^63 to 2^63 - 1, got -9.223372036854776E18");
}

TEST_F(ErrorsTest, AToolWithoutItsFunctionIsNamed) {
  EXPECT_EQ(ChatError(R"("tools":[{"type":"function"}])"),
            "400 invalid_request_error missing_required_parameter tools[0].function");
  EXPECT_EQ(ChatError(R"("tools":[{}])"),
            "400 invalid_request_error missing_required_parameter tools[0].name");
}

TEST_F(ErrorsTest, ATextThatCannotFitIsRefusedBeforeItIsEncoded) {
  const std::string text(4'000'000, 'x');
  const auto expect_refused = [](const std::shared_ptr<ReplyRecord>& reply, const char* param) {
    EXPECT_EQ(ErrorOf(reply),
              std::string("400 invalid_request_error context_length_exceeded ") + param);
    const std::string message = MessageOf(reply);
    EXPECT_TRUE(message.starts_with("This model's maximum context length is ")) << message;
    EXPECT_NE(message.find("you requested at least "), std::string::npos) << message;
  };
  expect_refused(Complete(R"("prompt":")" + text + '"'), "prompt");
  const std::string half = text.substr(text.size() / 2);
  const std::string message = R"({"role":"user","content":")" + half + "\"}";
  expect_refused(Post("/v1/chat/completions", R"({"messages":[)" + message + ',' + message + "]}"),
                 "messages");
}

TEST_F(ErrorsTest, ATextThatIsTruncatedMayHaveAnyLength) {
  engine_.AnswerAllWith(Text("x"));
  const std::string text(4'000'000, 'x');
  EXPECT_EQ(Complete(R"("truncate_prompt_tokens":5,"prompt":")" + text + '"')->status(), 200);
}

TEST_F(ErrorsTest, WhatIsNotBuiltIsRefusedByNameOnBothEndpoints) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("n":2)", "n"},
      {R"("best_of":2)", "best_of"},
      {R"("use_beam_search":true)", "use_beam_search"},
      {R"("prompt_logprobs":1)", "prompt_logprobs"},
      {R"("suffix":"x")", "suffix"},
      {R"("response_format":{"type":"json_object"})", "response_format"},
      {R"("response_format":{"type":"json_schema","json_schema":{}})", "response_format"},
      {R"("response_format":{})", "response_format"},
      {R"("guided_json":{})", "guided_json"},
      {R"("guided_regex":"a")", "guided_regex"},
      {R"("guided_choice":["a"])", "guided_choice"},
      {R"("guided_grammar":"x")", "guided_grammar"},
      {R"("structured_outputs":{"regex":"a"})", "structured_outputs"},
      {R"("chat_template":"x")", "chat_template"},
      {R"("thinking_token_budget":5)", "thinking_token_budget"},
      {R"("priority":1)", "priority"},
      {R"("functions":[])", "functions"},
      {R"("function_call":"auto")", "function_call"},
      {R"("modalities":["text","audio"])", "modalities"},
  };
  for (const auto& [field, param] : cases) {
    const std::string expected =
        std::string("400 invalid_request_error unsupported_parameter ") + param;
    EXPECT_EQ(ChatError(field), expected) << field;
    EXPECT_EQ(ErrorOf(Complete(std::string(R"("prompt":"x",)") + field)), expected) << field;
  }
  const std::string tools = R"("tools":[{"name":"f"}],"tool_choice":)";
  EXPECT_EQ(ChatError(tools + R"("required")"),
            "400 invalid_request_error unsupported_parameter tool_choice");
  EXPECT_EQ(ChatError(tools + R"({"type":"function","function":{"name":"f"}})"),
            "400 invalid_request_error unsupported_parameter tool_choice");
  EXPECT_EQ(ChatError(R"("echo":true)"), "400 invalid_request_error unsupported_parameter echo");
  EXPECT_EQ(ErrorOf(Complete(R"("prompt":"x","echo":true,"logprobs":1)")),
            "400 invalid_request_error unsupported_parameter echo");
  EXPECT_TRUE(ErrorOf(Post("/v1/chat/completions", R"({"messages":[{"role":"user","content":[
      {"type":"image_url","image_url":{"url":"x"}}]}]})"))
                  .starts_with("400 invalid_request_error unsupported_parameter messages[0]"));
}

TEST_F(ErrorsTest, WhatHasNoEffectIsAccepted) {
  engine_.AnswerAllWith(Text("x"));
  for (
      const char* fields :
      {R"("nobody_knows":{"deep":[1]})", R"("user":"u","metadata":{"a":"b"},"service_tier":"auto")",
       R"("store":true,"reasoning_effort":"high","verbosity":"low","prediction":{"type":"content"})",
       R"("modalities":["text"],"response_format":{"type":"text"},"parallel_tool_calls":true)",
       R"("tools":[],"tool_choice":"auto")", R"("tools":[],"tool_choice":"none")",
       R"("tools":[],"tool_choice":null)", R"("tool_choice":"none")", R"("best_of":1,"n":1)",
       R"("temperature":1,"top_k":10.0,"max_tokens":5.0,"seed":-3,"priority":0)",
       R"("thinking_token_budget":-1,"stop":[],"suffix":"","logit_bias":{})",
       R"("logit_bias":{"1535":100})", R"("cache_salt":"s","add_special_tokens":true)"}) {
    const auto reply = Chat(fields);
    EXPECT_EQ(reply->status(), 200) << fields << reply->body();
  }
}

TEST_F(ErrorsTest, NullIsAbsentForEveryField) {
  engine_.AnswerAllWith(Text("x"));
  for (const char* field : {"model",
                            "max_tokens",
                            "max_completion_tokens",
                            "temperature",
                            "top_p",
                            "top_k",
                            "min_p",
                            "frequency_penalty",
                            "presence_penalty",
                            "repetition_penalty",
                            "logit_bias",
                            "allowed_token_ids",
                            "bad_words",
                            "seed",
                            "n",
                            "stop",
                            "stop_token_ids",
                            "include_stop_str_in_output",
                            "ignore_eos",
                            "min_tokens",
                            "skip_special_tokens",
                            "truncate_prompt_tokens",
                            "logprobs",
                            "top_logprobs",
                            "prompt_logprobs",
                            "stream",
                            "stream_options",
                            "tools",
                            "tool_choice",
                            "parallel_tool_calls",
                            "response_format",
                            "guided_json",
                            "guided_regex",
                            "guided_choice",
                            "guided_grammar",
                            "structured_outputs",
                            "add_generation_prompt",
                            "continue_final_message",
                            "add_special_tokens",
                            "echo",
                            "chat_template",
                            "chat_template_kwargs",
                            "include_reasoning",
                            "thinking_token_budget",
                            "priority",
                            "request_id",
                            "return_tokens_as_token_ids",
                            "return_token_ids",
                            "cache_salt",
                            "functions",
                            "function_call",
                            "best_of",
                            "use_beam_search",
                            "suffix",
                            "user"}) {
    const std::string null_field = '"' + std::string(field) + "\":null";
    EXPECT_EQ(Chat(null_field)->status(), 200) << field;
    EXPECT_EQ(Complete(R"("prompt":"x",)" + null_field)->status(), 200) << field;
  }
}

TEST_F(ErrorsTest, MessagesAreRequiredAndCounted) {
  EXPECT_EQ(BodyError("{}"), "400 invalid_request_error missing_required_parameter messages");
  EXPECT_EQ(BodyError(R"({"messages":null})"),
            "400 invalid_request_error missing_required_parameter messages");
  EXPECT_EQ(BodyError(R"({"messages":[]})"), "400 invalid_request_error invalid_value messages");
  EXPECT_EQ(BodyError(R"({"messages":"hi"})"), "400 invalid_request_error invalid_type messages");
  std::string many = R"({"messages":[{"role":"user","content":"x"})";
  for (int i = 0; i < 4096; ++i) many += R"(,{"role":"user","content":"x"})";
  EXPECT_EQ(BodyError(many + "]}"), "400 invalid_request_error invalid_value messages");
  EXPECT_EQ(BodyError(R"({"messages":[{"role":"wizard","content":"x"}]})"),
            "400 invalid_request_error invalid_value messages[0].role");
  std::string tools = R"("tools":[{"name":"f"})";
  for (int i = 0; i < 128; ++i) tools += R"(,{"name":"f"})";
  EXPECT_EQ(ChatError(tools + "]"), "400 invalid_request_error invalid_value tools");
  std::string prompts = R"("prompt":["x")";
  for (int i = 0; i < 256; ++i) prompts += R"(,"x")";
  EXPECT_EQ(ErrorOf(Complete(prompts + "]")), "400 invalid_request_error invalid_value prompt");
}

TEST_F(ErrorsTest, AnUnknownModelDoesNotExist) {
  const auto reply = Chat(R"("model":"gpt-x")");
  EXPECT_EQ(ErrorOf(reply), "404 invalid_request_error model_not_found model");
  EXPECT_NE(MessageOf(reply).find("does not exist"), std::string::npos);
  EXPECT_EQ(ErrorOf(Complete(R"("prompt":"x","model":"gpt-x")")),
            "404 invalid_request_error model_not_found model");
}

TEST_F(ErrorsTest, ATooLongRequestSaysSoInTheWordsThatClientsKnow) {
  std::string words;
  for (int i = 0; i < 5000; ++i) words += "1,";
  const auto reply = Complete(R"("prompt":[)" + words + "1]");
  EXPECT_EQ(ErrorOf(reply), "400 invalid_request_error context_length_exceeded prompt");
  EXPECT_TRUE(MessageOf(reply).starts_with("This model's maximum context length is 4096 tokens"));
  EXPECT_EQ(ChatError(R"("max_tokens":4096)"),
            "400 invalid_request_error context_length_exceeded messages");
  EXPECT_EQ(ChatError(R"("max_tokens":9223372036854775807)"),
            "400 invalid_request_error context_length_exceeded messages");
}

TEST_F(ErrorsTest, TheContentTypeMustBeJson) {
  engine_.AnswerAllWith(Text("x"));
  const auto with_type = [&](HttpHeaders headers) {
    return Send({.method = "POST",
                 .path = "/v1/completions",
                 .query = {},
                 .headers = std::move(headers),
                 .body = R"({"prompt":"x"})",
                 .peer = {}});
  };
  EXPECT_EQ(ErrorOf(with_type({})), "415 invalid_request_error unsupported_media_type -");
  EXPECT_EQ(ErrorOf(with_type({{"content-type", "text/plain"}})),
            "415 invalid_request_error unsupported_media_type -");
  const auto good = with_type({{"content-type", "Application/JSON; charset=utf-8"}});
  engine_.RunToEnd();
  EXPECT_EQ(good->status(), 200);
}

TEST_F(ErrorsTest, RefusalsOfTheEngineAreTold) {
  engine_.RefuseNext(
      Status(Code::kResourceExhausted, "QUEUE_FULL", "the queue is full").WithRetryAfterMs(1500));
  const auto full = Chat();
  EXPECT_EQ(ErrorOf(full), "429 rate_limit_error rate_limit_exceeded -");
  EXPECT_EQ(full->Header("retry-after"), "2");
  EXPECT_EQ(full->Header("retry-after-ms"), "1500");
  engine_.Answer(FakeEngineClient::Failure(
      Status(Code::kInvalidArgument, "CACHE_NEVER_FITS", "9000 tokens never fit here")));
  EXPECT_EQ(ErrorOf(Chat()), "400 invalid_request_error context_length_exceeded -");
  engine_.Answer(
      FakeEngineClient::Failure(Status(Code::kDeadlineExceeded, "DEADLINE_EXCEEDED", "too late")));
  EXPECT_EQ(ErrorOf(Chat(R"("stream":true)")), "504 timeout_error deadline_exceeded -");
  engine_.set_group(std::nullopt);
  EXPECT_EQ(ErrorOf(Chat()), "503 server_error service_unavailable -");
}

TEST_F(ErrorsTest, NothingOfThePromptIsEverRepeated) {
  const std::string secret = "rate limit 429";
  for (const std::string& body :
       {R"({"messages":")" + secret + "\"}", R"({"messages":[{"role":")" + secret + "\"}]}",
        R"({"messages":[{"role":"user","content":{"a":")" + secret + "\"}}]}",
        R"({"messages":[{"role":"user","content":"x"}],"temperature":")" + secret + "\"}",
        R"({"messages":[{"role":"user","content":"x"}],"model":")" + secret + "\"}"}) {
    const auto reply = Post("/v1/chat/completions", body);
    EXPECT_GE(reply->status(), 400);
    EXPECT_EQ(reply->body().find(secret), std::string::npos) << reply->body();
  }
}

}  // namespace
}  // namespace levin::testing
