// The API behind the real HTTP server, asked over sockets.
#include <gtest/gtest.h>

#include "tests/router/api/api_fixture.h"
#include "tests/support/http_client.h"

namespace levin::testing {
namespace {

constexpr char kPath[] = "/v1/chat/completions";

class ApiServerTest : public ApiTest {
 protected:
  void Serve(ApiOptions options = {}) {
    UseOptions(std::move(options));
    auto server = HttpServer::Start({}, api_->handler());
    ASSERT_TRUE(server) << server.error().message();
    server_ = *std::move(server);
  }
  void SendChat(HttpClient& client, const std::string& more) {
    const std::string body = ChatBody(more);
    client.Send("POST " + std::string(kPath) +
                " HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  // Waits until that many requests have come, then lets the engine run.
  void RunEngine(size_t submits, int steps) {
    ASSERT_TRUE(engine_.WaitForSubmits(submits));
    for (int i = 0; i < steps; ++i) engine_.Step();
  }

  std::unique_ptr<HttpServer> server_;
};

TEST_F(ApiServerTest, OneConnectionCarriesWholeAndStreamedReplies) {
  Serve();
  HttpClient client(server_->port());
  engine_.AnswerAllWith(Text("Hello there"));
  SendChat(client, "");
  RunEngine(1, 100);
  const HttpReply whole = client.ReadReply();
  EXPECT_EQ(whole.status, 200);
  EXPECT_NE(whole.body.find("Hello there"), std::string::npos);
  EXPECT_EQ(whole.headers.at("content-type"), "application/json");

  SendChat(client, R"("stream":true)");
  RunEngine(2, 100);
  const HttpReply streamed = client.ReadReply();
  EXPECT_EQ(streamed.headers.at("content-type"), "text/event-stream; charset=utf-8");
  EXPECT_TRUE(streamed.body.ends_with("data: [DONE]\n\n"));
  std::string text;
  for (const value& chunk : Chunks(streamed.body)) {
    const object& delta = chunk.at("choices").as_array()[0].at("delta").as_object();
    if (const value* content = delta.if_contains("content")) text += Str(*content);
  }
  EXPECT_EQ(text, "Hello there");
  EXPECT_EQ(server_->open_connections(), 1);
}

TEST_F(ApiServerTest, AFaultBeforeTheFirstTokenOfAStreamHasItsOwnStatus) {
  Serve();
  HttpClient client(server_->port());
  engine_.Answer(
      FakeEngineClient::Failure(Status(Code::kUnavailable, "EPOCH_ENDED", "the group is gone")));
  SendChat(client, R"("stream":true)");
  RunEngine(1, 3);
  const HttpReply reply = client.ReadReply();
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.headers.at("retry-after"), "1");
  EXPECT_NE(reply.body.find("service_unavailable"), std::string::npos);
}

TEST_F(ApiServerTest, AFaultInTheMiddleCutsTheStreamBehindItsErrorEvent) {
  Serve();
  HttpClient client(server_->port());
  engine_.Answer(FakeEngineClient::Failure(Status(Code::kAborted, "ENGINE_RESTARTED", "gone"),
                                           DemoIds(*model_, "Hello")));
  SendChat(client, R"("stream":true)");
  RunEngine(1, 2);  // until something has left: a stream of which nothing has would be replaced
  EXPECT_EQ(client.ReadHead().status, 200);
  std::string body = client.ReadChunk(), chunk;
  RunEngine(1, 100);
  while (!(chunk = client.ReadChunk()).empty() && chunk != "<cut>") body += chunk;
  EXPECT_EQ(chunk, "<cut>") << "no terminating chunk: it would look like success";
  EXPECT_NE(body.find("{\"error\":"), std::string::npos);
  EXPECT_EQ(body.find("[DONE]"), std::string::npos);
}

TEST_F(ApiServerTest, AClosedConnectionCancelsWhateverItWaitedFor) {
  Serve();
  auto script = Text("Hello there", false);
  script.endless = true;
  engine_.AnswerAllWith(script);
  size_t requests = 0;
  for (const char* stream : {"true", "false"}) {
    for (int steps : {0, 1, 4}) {
      HttpClient client(server_->port());
      SendChat(client, std::string(R"("stream":)") + stream);
      RunEngine(++requests, steps);
      client.Close();
      EXPECT_TRUE(engine_.WaitForCancels(requests)) << stream << " after " << steps << " steps";
      engine_.RunToEnd();
    }
  }
  for (const auto& [ordinal, reason] : engine_.cancels()) {
    EXPECT_EQ(reason, CancelReason::kClientGone) << ordinal;
  }
}

TEST_F(ApiServerTest, ASilentStreamPings) {
  Serve({.sse_ping_interval_ms = 10});
  HttpClient client(server_->port());
  engine_.Answer(Text("Hello"));
  SendChat(client, R"("stream":true)");
  ASSERT_TRUE(engine_.WaitForSubmits(1));
  EXPECT_EQ(client.ReadHead().status, 200);
  EXPECT_EQ(client.ReadChunk(), ": ping\n\n");
  RunEngine(1, 100);
  std::string body, chunk;
  while (!(chunk = client.ReadChunk()).empty() && chunk != "<cut>") body += chunk;
  EXPECT_TRUE(body.ends_with("data: [DONE]\n\n")) << body;
}

}  // namespace
}  // namespace levin::testing
