// Requests in, replies out, and where the server listens.
#include "tests/common/http/http_server_fixture.h"

namespace levin {
namespace {

TEST_F(HttpServerTest, HandsOverTheRequestAndWritesTheReply) {
  Start();
  HttpClient client(port());
  client.Send(
      "POST /now?a=%20b&c HTTP/1.1\r\nHost: x\r\nX-Test: yes\r\nContent-Length: 5\r\n\r\nhello");
  const HttpReply reply = client.ReadReply();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "POST /now?a=%20b&c yes hello");
  EXPECT_EQ(reply.headers.at("content-type"), "text/plain");
  EXPECT_EQ(reply.headers.at("content-length"), "28");
  EXPECT_TRUE(reply.headers.contains("date"));
  EXPECT_FALSE(reply.headers.contains("connection"));
}

TEST_F(HttpServerTest, KeepsPercentEncodingOfThePathAndTellsThePeer) {
  Start();
  HttpClient client(port());
  client.Send("GET /v1/models/org%2Fname HTTP/1.1\r\nHost: x\r\n\r\n");
  Exchange exchange = Next();
  EXPECT_EQ(exchange.request.path, "/v1/models/org%2Fname");
  EXPECT_EQ(exchange.request.peer, "127.0.0.1");
  EXPECT_EQ(exchange.request.Header("host"), "x");
  EXPECT_EQ(exchange.request.Header("absent"), "");
}

TEST_F(HttpServerTest, AnswersManyRequestsOnOneConnection) {
  Start();
  HttpClient client(port());
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(client.Post("/now", std::to_string(i)).body, "POST /now?  " + std::to_string(i));
  }
  EXPECT_EQ(server_->open_connections(), 1);
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsOneAfterTheOther) {
  Start();
  HttpClient client(port());
  client.Send(
      "GET /first HTTP/1.1\r\nHost: x\r\n\r\nPOST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
      "\r\nabcGET /now?3 HTTP/1.1\r\nHost: x\r\n\r\n");
  Exchange first = Next();
  EXPECT_EQ(first.request.path, "/first");
  first.responder->Send({200, {}, "first"});
  EXPECT_EQ(client.ReadReply().body, "first");
  EXPECT_EQ(client.ReadReply().body, "POST /now?  abc");
  EXPECT_EQ(client.ReadReply().body, "GET /now?3  ");
}

TEST_F(HttpServerTest, HoldsBackAClientThatSendsMoreThanItsTurn) {
  Start();
  HttpClient client(port());
  const std::string body(300'000, 'b');
  client.Send("GET /first HTTP/1.1\r\nHost: x\r\n\r\n");
  Exchange first = Next();
  ASSERT_TRUE(
      client.Send("POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n" + body));
  first.responder->Send({200, {}, "first"});
  EXPECT_EQ(client.ReadReply().body, "first");
  EXPECT_TRUE(client.ReadReply().body == "POST /now?  " + body);
}

TEST_F(HttpServerTest, TakesAnAbsoluteTargetAsItsPath) {
  Start();
  HttpClient client(port());
  client.Send("GET http://example.org:80/now?a HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.ReadReply().body, "GET /now?a  ");
}

TEST_F(HttpServerTest, ReadsARequestThatArrivesByteByByte) {
  Start();
  HttpClient client(port());
  for (const char c :
       std::string("\r\nPOST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nabcd")) {
    ASSERT_TRUE(client.Send(std::string(1, c)));
  }
  EXPECT_EQ(client.ReadReply().body, "POST /now?  abcd");
}

TEST_F(HttpServerTest, ReadsAChunkedBodyAndIgnoresItsTrailers) {
  Start();
  HttpClient client(port());
  client.Send(
      "POST /now HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3;ext=1\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nX-Test: forged\r\n\r\n");
  EXPECT_EQ(client.ReadReply().body, "POST /now?  abc0123456789abcdef");
  EXPECT_EQ(client.Get("/now").status, 200);
}

TEST_F(HttpServerTest, AnswersHeadWithTheLengthAndNoBody) {
  Start();
  HttpClient client(port());
  client.Send("HEAD /now HTTP/1.1\r\nHost: x\r\n\r\n");
  const HttpReply reply = client.ReadReply(/*head_only=*/true);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.headers.at("content-length"), "12");
  EXPECT_EQ(client.Get("/now").body, "GET /now?  ");
}

TEST_F(HttpServerTest, AnswersAStreamToHeadWithoutItsBytes) {
  Start();
  HttpClient client(port());
  client.Send("HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::shared_ptr<HttpResponder> responder = Next().responder;
  responder->StartStream(200, {});
  EXPECT_TRUE(responder->Write("never seen"));
  responder->Finish();
  EXPECT_EQ(client.ReadReply(true).status, 200);
  EXPECT_EQ(client.Get("/now").body, "GET /now?  ");
}

TEST_F(HttpServerTest, SaysContinueBeforeALargeBodyIsSent) {
  Start();
  HttpClient client(port());
  client.Send("POST /now HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.ReadReply().status, 100);
  client.Send("ok");
  EXPECT_EQ(client.ReadReply().body, "POST /now?  ok");
}

TEST_F(HttpServerTest, AnswersHttp10AndClosesUnlessAskedToKeepAlive) {
  Start();
  HttpClient client(port());
  client.Send("GET /now HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(client.ReadReply().headers.at("connection"), "keep-alive");
  client.Send("GET /now HTTP/1.0\r\n\r\n");
  EXPECT_EQ(client.ReadReply().headers.at("connection"), "close");
  EXPECT_TRUE(client.AtEnd());
}

TEST_F(HttpServerTest, StreamsToHttp10WithoutChunks) {
  Start();
  HttpClient client(port());
  client.Send("GET /stream HTTP/1.0\r\n\r\n");
  const std::shared_ptr<HttpResponder> responder = Next().responder;
  responder->StartStream(200, {});
  responder->Write("one ");
  responder->Write("two");
  responder->Finish();
  const HttpReply reply = client.ReadReply();
  EXPECT_EQ(reply.body, "one two");
  EXPECT_FALSE(reply.headers.contains("transfer-encoding"));
}

TEST_F(HttpServerTest, ClosesWhenTheClientOrTheHandlerAsksForIt) {
  Start();
  HttpClient client(port());
  client.Send("GET /now HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.ReadReply().headers.at("connection"), "close");
  EXPECT_TRUE(client.AtEnd());

  HttpClient other(port());
  other.Send("GET /drain HTTP/1.1\r\nHost: x\r\n\r\n");
  Next().responder->Send({503, {{"Connection", "close"}}, "draining"});
  const HttpReply reply = other.ReadReply();
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.headers.at("connection"), "close");
  EXPECT_TRUE(other.AtEnd());
}

TEST_F(HttpServerTest, NamesAPortThatIsTaken) {
  Start();
  const Result<std::unique_ptr<HttpServer>> second =
      HttpServer::Start({.port = port()}, [](HttpRequest, std::shared_ptr<HttpResponder>) {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::kUnavailable);
  EXPECT_EQ(second.error().reason(), "PORT_IN_USE");
  EXPECT_THAT(second.error().message(), HasSubstr("127.0.0.1:" + std::to_string(port())));
}

TEST_F(HttpServerTest, RefusesAHostWithoutAnAddress) {
  const Result<std::unique_ptr<HttpServer>> server = HttpServer::Start(
      {.host = "no such host"}, [](HttpRequest, std::shared_ptr<HttpResponder>) {});
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(server.error().message(), HasSubstr("no such host"));
}

TEST_F(HttpServerTest, ListensOnIpv6) {
  Result<std::unique_ptr<HttpServer>> server = HttpServer::Start(
      {.host = "[::1]"}, [](HttpRequest request, std::shared_ptr<HttpResponder> responder) {
        responder->Send({200, {}, request.peer});
      });
  if (!server) GTEST_SKIP() << "no IPv6 here: " << server.error().message();
  HttpClient client((*server)->port(), "::1");
  EXPECT_EQ(client.Get("/").body, "::1");
}

}  // namespace
}  // namespace levin
