#include <gtest/gtest.h>

#include "common/metrics/router_metrics.h"
#include "tests/router/api/api_fixture.h"

namespace levin::testing {
namespace {

using ChatTest = ApiTest;

constexpr char kPath[] = "/v1/chat/completions";

// What a client that joins the deltas of one choice ends up with.
struct Joined {
  std::string content, reasoning, finish_reason, calls;
  value stop_reason = "absent";
  int roles = 0, finishes = 0;
  array logprobs;
};

Joined Join(const std::vector<value>& chunks) {
  Joined out;
  for (const value& chunk : chunks) {
    for (const value& choice : chunk.at("choices").as_array()) {
      EXPECT_EQ(choice.at("index").as_int64(), 0);
      const object& delta = choice.at("delta").as_object();
      EXPECT_LE(delta.size(), delta.contains("role") ? 2u : 1u) << "one kind for each chunk";
      if (delta.contains("role")) ++out.roles;
      if (const value* text = delta.if_contains("content")) out.content += Str(*text);
      if (const value* text = delta.if_contains("reasoning_content")) out.reasoning += Str(*text);
      if (const value* calls = delta.if_contains("tool_calls")) {
        for (const value& call : calls->as_array()) {
          if (const value* id = call.as_object().if_contains("id")) {
            EXPECT_EQ(Str(*id).size(), 29u);
            out.calls += "[" + Str(call.at("function").at("name")) + "]";
          }
          out.calls += Str(call.at("function").at("arguments"));
        }
      }
      if (!choice.at("finish_reason").is_null()) {
        ++out.finishes;
        out.finish_reason = Str(choice.at("finish_reason"));
        out.stop_reason = choice.at("stop_reason");
      }
      if (const value* logprobs = choice.as_object().if_contains("logprobs");
          logprobs->is_object()) {
        for (const value& entry : logprobs->at("content").as_array()) {
          out.logprobs.push_back(entry);
        }
      }
    }
  }
  return out;
}

TEST_F(ChatTest, TheGuidesRequestIsAnswered) {
  engine_.Answer(Text("The Dodgers."));
  const auto reply = PostAndRun(kPath, R"({"model":"levin-demo","messages":[
      {"role":"system","content":[{"type":"text","text":"You are a helpful assistant."}]},
      {"role":"user","content":[{"type":"text","text":"Who won the world series in 2020?"}]}]})");
  ASSERT_EQ(reply->status(), 200) << reply->body();
  const value body = Json(reply);
  EXPECT_EQ(Str(body.at("object")), "chat.completion");
  EXPECT_EQ(Str(body.at("model")), "levin-demo");
  EXPECT_TRUE(Str(body.at("id")).starts_with("chatcmpl-"));
  EXPECT_TRUE(Str(body.at("system_fingerprint")).starts_with("fp_"));
  const value& choice = body.at("choices").as_array()[0];
  EXPECT_EQ(Str(choice.at("message").at("role")), "assistant");
  EXPECT_EQ(Str(choice.at("message").at("content")), "The Dodgers.");
  EXPECT_TRUE(choice.at("message").at("refusal").is_null());
  EXPECT_FALSE(choice.at("message").as_object().contains("tool_calls"));
  EXPECT_EQ(Str(choice.at("finish_reason")), "stop");
  EXPECT_TRUE(choice.at("stop_reason").is_null());
  const value& usage = body.at("usage");
  EXPECT_EQ(usage.at("total_tokens").as_int64(),
            usage.at("prompt_tokens").as_int64() + usage.at("completion_tokens").as_int64());
  EXPECT_EQ(usage.at("prompt_tokens").as_int64(),
            static_cast<int64_t>(engine_.submitted()[0].prompt.size()));
}

TEST_F(ChatTest, ContentAsStringAndAsPartsIsTheSamePrompt) {
  PostAndRun(kPath, R"({"messages":[{"role":"user","content":"hi"}]})");
  PostAndRun(kPath, R"({"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]})");
  ASSERT_EQ(engine_.submitted().size(), 2u);
  EXPECT_EQ(engine_.submitted()[0].prompt, engine_.submitted()[1].prompt);
}

TEST_F(ChatTest, AnAliasIsAcceptedAndTheFirstNameAnswers) {
  engine_.AnswerAllWith(Text("x"));
  const value body = Json(Chat(R"("model":"org/levin demo")"));
  EXPECT_EQ(Str(body.at("model")), "levin-demo");
}

TEST_F(ChatTest, AStreamIsEventsWithOneRoleOneFinishAndDone) {
  engine_.Answer(Text("Hello there"));
  const auto reply = Chat(R"("stream":true)");
  EXPECT_EQ(reply->status(), 200);
  EXPECT_EQ(reply->Header("content-type"), "text/event-stream; charset=utf-8");
  EXPECT_EQ(reply->Header("cache-control"), "no-cache");
  EXPECT_EQ(reply->Header("x-accel-buffering"), "no");
  EXPECT_EQ(reply->end(), ReplyRecord::End::kFinished);
  EXPECT_TRUE(reply->body().ends_with("data: [DONE]\n\n"));

  const std::vector<value> chunks = Chunks(reply->body());
  const object& first = chunks.front().at("choices").as_array()[0].at("delta").as_object();
  EXPECT_EQ(Str(first.at("role")), "assistant");
  EXPECT_EQ(Str(first.at("content")), "");
  for (const value& chunk : chunks) {
    EXPECT_EQ(Str(chunk.at("object")), "chat.completion.chunk");
    EXPECT_EQ(chunk.at("id"), chunks[0].at("id"));
    EXPECT_EQ(chunk.at("created"), chunks[0].at("created"));
    EXPECT_EQ(Str(chunk.at("model")), "levin-demo");
    EXPECT_EQ(chunk.at("choices").as_array().size(), 1u);
    EXPECT_FALSE(chunk.as_object().contains("usage"));
  }
  const Joined joined = Join(chunks);
  EXPECT_EQ(joined.content, "Hello there");
  EXPECT_EQ(joined.roles, 1);
  EXPECT_EQ(joined.finishes, 1);
  EXPECT_EQ(joined.finish_reason, "stop");
  EXPECT_TRUE(joined.stop_reason.is_null());
}

TEST_F(ChatTest, NothingIsSentBeforeTheFirstTokenExists) {
  engine_.Answer(Text("Hello"));
  const auto reply = Post(kPath, ChatBody(R"("stream":true)"));
  EXPECT_EQ(reply->status(), 0);
  engine_.Step();  // admitted
  EXPECT_EQ(reply->status(), 0);
  engine_.Step();  // the first token
  EXPECT_EQ(reply->status(), 200);
  EXPECT_NE(reply->body().find("\"role\""), std::string::npos);
  engine_.RunToEnd();
}

TEST_F(ChatTest, TheLastTextAndTheFinishShareAChunk) {
  engine_.Answer(Text("one two", false));
  const int64_t length = static_cast<int64_t>(DemoIds(*model_, "one two").size());
  const auto reply = Chat(R"("stream":true,"max_tokens":)" + std::to_string(length));
  const value last = Chunks(reply->body()).back().at("choices").as_array()[0];
  EXPECT_FALSE(Str(last.at("delta").at("content")).empty());
  EXPECT_EQ(Str(last.at("finish_reason")), "length");
}

TEST_F(ChatTest, AWholeReplyIsTheJoinedStream) {
  const std::string text = "<think>\nwhy\n</think>\nA 😀世界 stop here and on";
  for (const char* more : {"", R"(,"stop":"stop here")", R"(,"stop":["zzz","on"])",
                           R"(,"max_tokens":9)", R"(,"max_tokens":23)", R"(,"logprobs":true)",
                           R"(,"stop":"世","include_stop_str_in_output":true)",
                           R"(,"skip_special_tokens":false,"ignore_eos":true)"}) {
    engine_.Answer(BytesOf(text));
    engine_.Answer(BytesOf(text));
    const std::string base = std::string(R"("seed":7)") + more;
    const value whole = Json(Chat(base)).at("choices").as_array()[0];
    const Joined joined = Join(Chunks(Chat(base + R"(,"stream":true)")->body()));
    EXPECT_EQ(joined.content, Str(whole.at("message").at("content"))) << more;
    EXPECT_EQ(joined.finish_reason, Str(whole.at("finish_reason"))) << more;
    EXPECT_EQ(joined.stop_reason, whole.at("stop_reason")) << more;
    if (whole.at("logprobs").is_object()) {
      EXPECT_EQ(joined.logprobs, whole.at("logprobs").at("content").as_array()) << more;
    }
    EXPECT_EQ(joined.content.find("\xEF\xBF\xBD"), std::string::npos);
  }
}

TEST_F(ChatTest, EveryChunkHoldsWholeCharacters) {
  engine_.Answer(BytesOf("a😀世👩‍👩‍👧é"));
  const auto reply = Chat(R"("stream":true)");
  for (const std::string& event : Events(reply->body())) {
    EXPECT_TRUE(IsValidUtf8(event));
    EXPECT_EQ(event.find("\xEF\xBF\xBD"), std::string::npos);
  }
  EXPECT_EQ(Join(Chunks(reply->body())).content, "a😀世👩‍👩‍👧é");
}

TEST_F(ChatTest, UsageComesInOneChunkAndOnlyWhenAsked) {
  engine_.AnswerAllWith(Text("Hello there"));
  const auto usage_chunks = [&](const std::string& options) {
    const auto reply = Chat(R"("stream":true,"stream_options":)" + options);
    int count = 0;
    const std::vector<value> chunks = Chunks(reply->body());
    for (const value& chunk : chunks) {
      if (!chunk.at("choices").as_array().empty()) continue;
      ++count;
      EXPECT_EQ(&chunk, &chunks.back());
      EXPECT_GT(chunk.at("usage").at("completion_tokens").as_int64(), 0);
    }
    return count;
  };
  EXPECT_EQ(usage_chunks("null"), 0);
  EXPECT_EQ(usage_chunks("{}"), 0);
  EXPECT_EQ(usage_chunks(R"({"include_usage":false})"), 0);
  EXPECT_EQ(usage_chunks(R"({"include_usage":true})"), 1);
}

TEST_F(ChatTest, ContinuousUsageIsOnEveryChunkAndRises) {
  engine_.Answer(Text("Hello there you"));
  const auto reply = Chat(
      R"("stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true})");
  int64_t last = 0;
  for (const value& chunk : Chunks(reply->body())) {
    const int64_t now = chunk.at("usage").at("completion_tokens").as_int64();
    EXPECT_GE(now, last);
    EXPECT_GT(chunk.at("usage").at("prompt_tokens").as_int64(), 0);
    last = now;
  }
  EXPECT_EQ(last, static_cast<int64_t>(DemoIds(*model_, "Hello there you").size()) + 1);
}

TEST_F(ChatTest, AStopStringIsNamedInBothModes) {
  for (const char* stream : {"true", "false"}) {
    engine_.Answer(BytesOf("one\n\ntwo"));
    const auto reply = Chat(std::string(R"("stop":["\n\n"],"stream":)") + stream);
    if (stream == std::string_view("true")) {
      const Joined joined = Join(Chunks(reply->body()));
      EXPECT_EQ(joined.content, "one");
      EXPECT_EQ(Str(joined.stop_reason), "\n\n");
    } else {
      EXPECT_EQ(Str(Json(reply).at("choices").as_array()[0].at("stop_reason")), "\n\n");
    }
  }
  EXPECT_EQ(engine_.cancels().size(), 2u);
}

TEST_F(ChatTest, AStopIdIsNamedAsANumber) {
  engine_.Answer(BytesOf("abc"));
  const TokenId b = ByteIds(*model_, "b")[0];
  const value choice =
      Json(Chat(R"("stop_token_ids":[)" + std::to_string(b) + "]")).at("choices").as_array()[0];
  EXPECT_EQ(Str(choice.at("message").at("content")), "a");
  EXPECT_EQ(choice.at("stop_reason").as_int64(), b);
}

TEST_F(ChatTest, MaxCompletionTokensWinsAndTheLengthUsedIsTold) {
  engine_.AnswerAllWith(Text("a b c d e f g h"));
  EXPECT_EQ(Chat()->Header("x-levin-max-tokens"), "512");  // the demo's default
  const auto reply = Chat(R"("max_tokens":50,"max_completion_tokens":2)");
  EXPECT_EQ(reply->Header("x-levin-max-tokens"), "2");
  EXPECT_EQ(Json(reply).at("usage").at("completion_tokens").as_int64(), 2);
  EXPECT_EQ(Chat(R"("stream":true,"max_tokens":3)")->Header("x-levin-max-tokens"), "3");
}

TEST_F(ChatTest, TheEndTokenFirstIsAnEmptyString) {
  engine_.AnswerAllWith(Text(""));
  const value whole = Json(Chat());
  EXPECT_EQ(Str(whole.at("choices").as_array()[0].at("message").at("content")), "");
  EXPECT_EQ(whole.at("usage").at("completion_tokens").as_int64(), 1);
  const std::vector<value> chunks = Chunks(Chat(R"("stream":true)")->body());
  ASSERT_EQ(chunks.size(), 2u);
  EXPECT_TRUE(chunks[1].at("choices").as_array()[0].at("delta").as_object().empty());
}

TEST_F(ChatTest, TokenIdsAreReturnedInBothModes) {
  engine_.AnswerAllWith(Text("Hello"));
  const value whole = Json(Chat(R"("return_token_ids":true)"));
  const std::vector<TokenId> prompt = engine_.submitted()[0].prompt;
  ASSERT_EQ(whole.at("prompt_token_ids").as_array().size(), prompt.size());
  EXPECT_EQ(whole.at("prompt_token_ids").as_array()[0].as_int64(), prompt[0]);
  const array ids = whole.at("choices").as_array()[0].at("token_ids").as_array();
  EXPECT_EQ(ids.back().as_int64(), model_->info().eos);

  const auto chunks = Chunks(Chat(R"("return_token_ids":true,"stream":true)")->body());
  EXPECT_EQ(chunks[0].at("prompt_token_ids"), whole.at("prompt_token_ids"));
  array joined;
  for (size_t i = 1; i < chunks.size(); ++i) {
    EXPECT_FALSE(chunks[i].as_object().contains("prompt_token_ids"));
    for (const value& id : chunks[i].at("choices").as_array()[0].at("token_ids").as_array()) {
      joined.push_back(id);
    }
  }
  EXPECT_EQ(joined, ids);
}

TEST_F(ChatTest, LogprobsCoverEveryTokenWithItsTrueBytes) {
  auto script = BytesOf("é");
  for (size_t i = 0; i < script.tokens.size(); ++i) {
    script.tokens[i].logprob = -0.5f - static_cast<float>(i);
    script.tokens[i].top = {{script.tokens[i].token, script.tokens[i].logprob},
                            {5, -std::numeric_limits<float>::infinity()}};
  }
  engine_.Answer(script);
  const value choice =
      Json(Chat(R"("logprobs":true,"top_logprobs":2)")).at("choices").as_array()[0];
  EXPECT_EQ(engine_.submitted()[0].sampling.logprobs, 2);
  const array& entries = choice.at("logprobs").at("content").as_array();
  ASSERT_EQ(entries.size(), 3u);  // two bytes and the end token
  EXPECT_EQ(entries[0].at("bytes").as_array()[0].as_int64(), 0xC3);
  EXPECT_EQ(entries[1].at("bytes").as_array()[0].as_int64(), 0xA9);
  EXPECT_EQ(Str(entries[2].at("token")), "<end_of_sentence>");
  EXPECT_EQ(entries[0].at("logprob").as_double(), -0.5);
  const array& top = entries[0].at("top_logprobs").as_array();
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[1].at("logprob").as_double(), -9999.0);
}

TEST_F(ChatTest, ToolCallsAreReportedInBothModes) {
  const std::string text =
      "I look.\n<tool_calls>\n{\"name\": \"get\", \"arguments\": {\"a\": 1}}\n</tool_calls>";
  engine_.AnswerAllWith(BytesOf(text));
  const std::string tools =
      R"("tools":[{"type":"function","function":{"name":"get","parameters":{"type":"object"}}}])";
  const value whole = Json(Chat(tools)).at("choices").as_array()[0];
  EXPECT_EQ(Str(whole.at("finish_reason")), "tool_calls");
  EXPECT_EQ(Str(whole.at("message").at("content")), "I look.");
  const value& call = whole.at("message").at("tool_calls").as_array()[0];
  EXPECT_EQ(Str(call.at("type")), "function");
  EXPECT_EQ(Str(call.at("function").at("arguments")), "{\"a\": 1}");

  const Joined joined = Join(Chunks(Chat(tools + R"(,"stream":true)")->body()));
  EXPECT_EQ(joined.content, "I look.");
  EXPECT_EQ(joined.calls, "[get]{\"a\": 1}");
  EXPECT_EQ(joined.finish_reason, "tool_calls");

  const Joined none = Join(Chunks(Chat(tools + R"(,"stream":true,"tool_choice":"none")")->body()));
  EXPECT_EQ(none.content, text);
  EXPECT_EQ(none.finish_reason, "stop");
}

TEST_F(ChatTest, AClientThatLeavesCancelsInEveryPhase) {
  auto script = Text("a b c", false);
  script.endless = true;
  engine_.AnswerAllWith(script);
  for (const char* stream : {"true", "false"}) {
    for (int steps : {0, 1, 2, 6}) {
      const size_t before = engine_.cancels().size();
      const auto reply = Post(kPath, ChatBody(std::string(R"("stream":)") + stream));
      for (int i = 0; i < steps; ++i) engine_.Step();
      reply->Leave();
      ASSERT_EQ(engine_.cancels().size(), before + 1);
      EXPECT_EQ(engine_.cancels().back().second, CancelReason::kClientGone);
      engine_.RunToEnd();
      EXPECT_EQ(reply->end(), ReplyRecord::End::kNone) << "nobody is there to be answered";
    }
  }
}

TEST_F(ChatTest, AFaultBeforeTheFirstTokenIsAnOrdinaryError) {
  engine_.Answer(FakeEngineClient::Failure(
      Status(Code::kUnavailable, "EPOCH_ENDED", "the group is gone").WithRetryAfterMs(2500)));
  const auto reply = Chat(R"("stream":true)");
  EXPECT_EQ(ErrorOf(reply), "503 server_error service_unavailable -");
  EXPECT_EQ(reply->Header("retry-after"), "3");
  EXPECT_EQ(reply->Header("retry-after-ms"), "2500");
}

TEST_F(ChatTest, AFaultInTheMiddleIsAnErrorEventWithoutDone) {
  const Status fault(Code::kAborted, "ENGINE_RESTARTED", "rank 1 at /some/path is gone");
  engine_.Answer(FakeEngineClient::Failure(fault, DemoIds(*model_, "Hello there")));
  const auto reply = Chat(R"("stream":true)");
  EXPECT_EQ(reply->status(), 200);
  EXPECT_EQ(reply->end(), ReplyRecord::End::kAborted);
  EXPECT_EQ(reply->body().find("[DONE]"), std::string::npos);
  const value last = boost::json::parse(Events(reply->body()).back());
  EXPECT_EQ(Str(last.at("error").at("type")), "server_error");
  EXPECT_EQ(reply->body().find("/some/path"), std::string::npos);

  engine_.Answer(FakeEngineClient::Failure(fault, DemoIds(*model_, "Hello there")));
  EXPECT_EQ(ErrorOf(Chat()), "500 server_error internal_error -");
}

TEST_F(ChatTest, ASlowReadersDeltasAreMergedAndNothingIsLost) {
  engine_.Answer(BytesOf("the quick brown fox"));
  const auto reply = Post(kPath, ChatBody(R"("stream":true)"));
  for (int i = 0; i < 4; ++i) engine_.Step();
  reply->set_buffered_bytes(1 << 20);
  const int before = reply->writes();
  for (int i = 0; i < 10; ++i) engine_.Step();
  EXPECT_EQ(reply->writes(), before);
  reply->set_buffered_bytes(0);
  engine_.Step();
  EXPECT_EQ(reply->writes(), before + 1);
  engine_.RunToEnd();
  EXPECT_EQ(Join(Chunks(reply->body())).content, "the quick brown fox");
}

TEST_F(ChatTest, ASilentStreamSaysThatItLives) {
  UseOptions({.sse_ping_interval_ms = 15'000});
  engine_.Answer(Text("Hello"));
  const auto reply = Post(kPath, ChatBody(R"("stream":true)"));
  EXPECT_TRUE(reply->Ping());
  EXPECT_EQ(reply->body(), ": ping\n\n") << "no chunk before the first token";
  engine_.RunToEnd();
  EXPECT_EQ(Join(Chunks(reply->body())).content, "Hello");
  UseOptions({});
  engine_.Answer(Text("Hello"));
  EXPECT_FALSE(Chat(R"("stream":true)")->Ping());
}

TEST_F(ChatTest, RequestsAreCountedByHowTheyEnded) {
  const RouterMetrics metrics{{.model_name = "levin-demo", .groups = {"0"}}};
  UseOptions({.metrics = &metrics});
  const auto count = [&](HttpCode code) {
    return metrics.requests(Api::kChat, RequestClass::kDefault, code).value();
  };
  engine_.AnswerAllWith(Text("Hello"));
  Chat();
  auto reply = Post(kPath, ChatBody(R"("stream":true)"));
  for (int i = 0; i < 2; ++i) engine_.Step();
  EXPECT_EQ(metrics.open_streams(Transport::kSse).value(), 1);
  engine_.RunToEnd();
  EXPECT_EQ(count(HttpCode::k200), 2);
  EXPECT_EQ(metrics.open_streams(Transport::kSse).value(), 0);
  Chat(R"("temperature":9)");
  EXPECT_EQ(count(HttpCode::k400), 1);
  engine_.AnswerAllWith(Endless());
  reply = Post(kPath, ChatBody());
  reply->Leave();
  engine_.RunToEnd();
  EXPECT_EQ(count(HttpCode::k499), 1);
}

TEST_F(ChatTest, TheRequestsIdIsEchoedAndEndsTheReplysId) {
  engine_.AnswerAllWith(Text("x"));
  auto reply = PostAndRun(kPath, ChatBody(), {{"x-request-id", "abc-1"}});
  EXPECT_EQ(reply->Header("x-request-id"), "abc-1");
  EXPECT_EQ(Str(Json(reply).at("id")), "chatcmpl-abc-1");
  reply = Chat(R"("request_id":"from-body")");
  EXPECT_EQ(reply->Header("x-request-id"), "from-body");
  reply = PostAndRun(kPath, ChatBody(R"("request_id":"body")"), {{"x-request-id", "head"}});
  EXPECT_EQ(reply->Header("x-request-id"), "head");
  EXPECT_EQ(Chat()->Header("x-request-id").size(), 32u);
  reply = PostAndRun(kPath, ChatBody(), {{"x-request-id", std::string(500, 'x')}});
  EXPECT_EQ(reply->Header("x-request-id"), std::string(128, 'x'));
  reply = PostAndRun(kPath, ChatBody(), {{"x-request-id", "a b"}});
  EXPECT_EQ(ErrorOf(reply), "400 invalid_request_error invalid_value x-request-id");
  EXPECT_EQ(ErrorOf(Chat(R"("request_id":"a\nb")")),
            "400 invalid_request_error invalid_value request_id");
}

TEST_F(ChatTest, TheDeadlineGoesToTheEngine) {
  engine_.AnswerAllWith(Text("x"));
  PostAndRun(kPath, ChatBody(), {{"x-levin-timeout-ms", "250"}});
  EXPECT_EQ(engine_.submitted()[0].deadline_unix_ms, clock_.UnixMs() + 250);
  EXPECT_EQ(ErrorOf(PostAndRun(kPath, ChatBody(), {{"x-levin-timeout-ms", "soon"}})),
            "400 invalid_request_error invalid_value x-levin-timeout-ms");
}

// As ChatTest, with the think block in its own field.
class ReasoningChatTest : public ApiTest {
 protected:
  ReasoningChatTest() {
    api_ = std::make_unique<HttpApi>(reasoning_generator_, engine_, clock_, ApiOptions{});
  }

  const std::unique_ptr<ServedModel> reasoning_model_ =
      DemoModel([](ModelInfo& info) { info.parse_reasoning = true; });
  Generator reasoning_generator_{*reasoning_model_, engine_, clock_};
};

TEST_F(ReasoningChatTest, TheThinkBlockIsItsOwnFieldInBothModes) {
  engine_.AnswerAllWith(BytesOf("<think>\na😀\n</think>\n\nb"));
  const value whole = Json(Chat());
  const object& message = whole.at("choices").as_array()[0].at("message").as_object();
  EXPECT_EQ(Str(message.at("reasoning_content")), "a😀");
  EXPECT_EQ(Str(message.at("content")), "b");
  EXPECT_EQ(whole.at("usage").at("completion_tokens_details").at("reasoning_tokens").as_int64(),
            22);

  const Joined joined = Join(Chunks(Chat(R"("stream":true)")->body()));
  EXPECT_EQ(joined.reasoning, "a😀");
  EXPECT_EQ(joined.content, "b");

  const value hidden = Json(Chat(R"("include_reasoning":false)"));
  EXPECT_FALSE(
      hidden.at("choices").as_array()[0].at("message").as_object().contains("reasoning_content"));
  EXPECT_EQ(hidden.at("usage"), whole.at("usage")) << "what is not shown still counts";
}

TEST_F(ReasoningChatTest, ALengthCutInsideThinkingHasNoContent) {
  engine_.AnswerAllWith(BytesOf("<think>\nabcdef"));
  const value whole = Json(Chat(R"("max_tokens":10)"));
  const value& choice = whole.at("choices").as_array()[0];
  EXPECT_TRUE(choice.at("message").at("content").is_null());
  EXPECT_EQ(Str(choice.at("message").at("reasoning_content")), "ab");
  EXPECT_EQ(Str(choice.at("finish_reason")), "length");
  EXPECT_EQ(whole.at("usage").at("completion_tokens_details").at("reasoning_tokens").as_int64(),
            10);
}

}  // namespace
}  // namespace levin::testing
