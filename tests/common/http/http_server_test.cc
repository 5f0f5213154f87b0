#include "common/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/mailbox.h"
#include "tests/support/http_client.h"

namespace levin {
namespace {

using ::testing::HasSubstr;
using testing::HttpClient;
using testing::HttpReply;

struct Exchange {
  HttpRequest request;
  std::shared_ptr<HttpResponder> responder;
};

std::chrono::steady_clock::time_point InTenSeconds() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(10);
}

// "/now" is answered at once with method, path, query and body; every other path waits in
// `waiting` for the test to answer it.
class HttpServerTest : public ::testing::Test {
 protected:
  void Start(HttpServerOptions options = {}) {
    Result<std::unique_ptr<HttpServer>> server =
        HttpServer::Start(options, [this](HttpRequest request, std::shared_ptr<HttpResponder> r) {
          if (request.path != "/now") {
            ASSERT_TRUE(waiting.TryPush({std::move(request), std::move(r)}));
            return;
          }
          std::string body = request.method + " " + request.path + "?" + request.query + " " +
                             std::string(request.Header("x-test")) + " " + request.body;
          r->Send({200, {{"content-type", "text/plain"}}, std::move(body)});
        });
    ASSERT_TRUE(server) << server.error().message();
    server_ = *std::move(server);
  }

  uint16_t port() const { return server_->port(); }

  Exchange Next() {
    std::optional<Exchange> next = waiting.PopUntil(InTenSeconds());
    EXPECT_TRUE(next) << "no request arrived";
    return next ? *std::move(next) : Exchange{};
  }

  Mailbox<Exchange> waiting{256};
  std::unique_ptr<HttpServer> server_;
};

// A flag of another thread that can be waited for.
class Signal {
 public:
  std::function<void()> Callback() {
    return [promise = promise_] { promise->set_value(); };
  }
  bool Wait() { return future_.wait_until(InTenSeconds()) == std::future_status::ready; }
  bool IsSet() { return future_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }

 private:
  std::shared_ptr<std::promise<void>> promise_ = std::make_shared<std::promise<void>>();
  std::future<void> future_ = promise_->get_future();
};

std::string ErrorCode(const HttpReply& reply) {
  const size_t at = reply.body.find("\"code\":\"");
  if (at == std::string::npos) return "no code in: " + reply.body;
  return reply.body.substr(at + 8, reply.body.find('"', at + 8) - at - 8);
}

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

TEST_F(HttpServerTest, RefusesAnUnknownExpectation) {
  Start();
  HttpClient client(port());
  client.Send("POST /now HTTP/1.1\r\nHost: x\r\nExpect: magic\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.ReadReply().status, 417);
}

TEST_F(HttpServerTest, ItsOwnRefusalsCarryTheRequestIdOfTheClient) {
  Start({.header_bytes_max = 2000, .body_bytes_max = 1000});
  const auto refusal = [this](const std::string& fields) {
    HttpClient client(port());
    client.Send("POST /now HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n");
    const HttpReply reply = client.ReadReply();
    const auto id = reply.headers.find("x-request-id");
    return std::to_string(reply.status) + ' ' + (id == reply.headers.end() ? "-" : id->second);
  };
  const std::string id = "X-Request-Id: my-id\r\n";
  EXPECT_EQ(refusal(id + "Content-Length: 1001\r\n"), "413 my-id");
  EXPECT_EQ(refusal(id + "Transfer-Encoding: chunked\r\n\r\n3e9\r\n"), "413 my-id");
  EXPECT_EQ(refusal(id + "Expect: magic\r\nContent-Length: 2\r\n"), "417 my-id");
  EXPECT_EQ(refusal(id + "Transfer-Encoding: gzip\r\n"), "501 my-id");
  EXPECT_EQ(refusal(id + "Host: y\r\n"), "400 my-id");
  const std::string fill = "X-Fill: " + std::string(2000, 'a') + "\r\n";
  EXPECT_EQ(refusal(id + fill), "431 my-id");
  EXPECT_EQ(refusal(fill + "x-request-ID:my-id \r\n"), "431 my-id");
  EXPECT_EQ(refusal("X-Request-Id: " + std::string(500, 'x') + "\r\n" + fill),
            "431 " + std::string(128, 'x'));
  EXPECT_EQ(refusal(id + "no field\r\n"), "400 my-id");
}

TEST_F(HttpServerTest, ItsOwnAnswersWithoutAnIdOfTheClientCarryOneMadeUp) {
  Start({.header_bytes_max = 2000, .read_idle_ms_max = 50});
  const auto answer = [this](const std::string& request) {
    HttpClient client(port());
    client.Send(request);
    const HttpReply reply = client.ReadReply();
    EXPECT_TRUE(reply.headers.contains("x-request-id")) << request.substr(0, 60);
    const auto id = reply.headers.find("x-request-id");
    return std::to_string(reply.status) + ' ' +
           std::to_string(id == reply.headers.end() ? 0 : id->second.size());
  };
  const std::string start = "GET /now HTTP/1.1\r\nHost: x\r\n";
  EXPECT_EQ(answer(start + "X-Fill: " + std::string(2000, 'a') + "\r\n\r\n"), "431 32");
  EXPECT_EQ(answer(start + "Expect: magic\r\n\r\n"), "417 32");
  EXPECT_EQ(answer(start + "X-Request-Id: two words\r\nExpect: magic\r\n\r\n"), "417 32");
  EXPECT_EQ(answer("\x16\x03\x01"), "400 32");
  EXPECT_EQ(answer("GET /now HT"), "408 32");
}

TEST_F(HttpServerTest, TheAnswerToADroppedRequestCarriesItsId) {
  Start();
  HttpClient client(port());
  client.Send("GET /drop HTTP/1.1\r\nHost: x\r\nX-Request-Id: my-id\r\n\r\n");
  Next().responder.reset();
  const HttpReply reply = client.ReadReply();
  EXPECT_EQ(reply.status, 500);
  EXPECT_EQ(reply.headers.at("x-request-id"), "my-id");
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

TEST_F(HttpServerTest, LetsNoHeaderValueForgeAnotherHeader) {
  Start();
  HttpClient client(port());
  client.Send("GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
  Next().responder->Send({200, {{"x-request-id", "a\r\nset-cookie: b"}}, ""});
  const HttpReply reply = client.ReadReply();
  EXPECT_EQ(reply.headers.at("x-request-id"), "a  set-cookie: b");
  EXPECT_FALSE(reply.headers.contains("set-cookie"));
}

TEST_F(HttpServerTest, RefusesWhatIsMalformedInOpenAisErrorShape) {
  Start();
  for (const std::string request : {
           "GET  /now HTTP/1.1\r\nHost: x\r\n\r\n",
           "GET /now HTTP/1.1\r\nHost : x\r\n\r\n",
           "GET /now HTTP/1.1\r\n\r\n",
           "GET /now HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
           "GET /now\r\nHost: x\r\n\r\n",
           "POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
           "POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
           "POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
           "POST /now HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
           "POST /now HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
           "fffffffffffffffff\r\n",
           "\x16\x03\x01\x02",
       }) {
    HttpClient client(port());
    client.Send(request);
    const HttpReply reply = client.ReadReply();
    EXPECT_EQ(reply.status, 400) << request;
    EXPECT_EQ(ErrorCode(reply), "malformed_request") << request;
    EXPECT_THAT(reply.body, HasSubstr("\"type\":\"invalid_request_error\",\"param\":null"))
        << request;
    EXPECT_EQ(reply.headers.at("content-type"), "application/json");
    EXPECT_TRUE(client.AtEnd()) << request;
  }
  EXPECT_EQ(waiting.size(), 0u);
}

TEST_F(HttpServerTest, RefusesRequestsThatTwoServersCouldFrameDifferently) {
  Start();
  const std::string start = "POST /now HTTP/1.1\r\nHost: x\r\n";
  const std::string body = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
  for (const std::string headers : {
           "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
           "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
           "Content-Length: 5\r\nTransfer-Encoding: identity\r\n",
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
       }) {
    HttpClient client(port());
    client.Send(start + headers + "\r\n" + body);
    EXPECT_EQ(client.ReadReply().status, 400) << headers;
    EXPECT_TRUE(client.AtEnd()) << headers;
  }
  for (const std::string headers : {
           "Transfer-Encoding: identity\r\n",
           "Transfer-Encoding: chunked, gzip\r\n",
           "Transfer-Encoding: gzip, chunked\r\n",
       }) {
    HttpClient client(port());
    client.Send(start + headers + "\r\n" + body);
    EXPECT_EQ(client.ReadReply().status, 501) << headers;
    EXPECT_TRUE(client.AtEnd()) << headers;
  }
  HttpClient old(port());
  old.Send("POST /now HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n" + body);
  EXPECT_EQ(old.ReadReply().status, 400);
  EXPECT_EQ(waiting.size(), 0u);
}

TEST_F(HttpServerTest, RefusesOtherVersionsOfHttp) {
  Start();
  HttpClient client(port());
  client.Send("GET / HTTP/2.0\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.ReadReply().status, 505);
}

TEST_F(HttpServerTest, TakesHeadersUpToTheLimitAndRefusesMore) {
  Start({.header_bytes_max = 1000});
  const std::string start = "GET /now HTTP/1.1\r\nHost: x\r\nX-Fill: ";
  HttpClient client(port());
  client.Send(start + std::string(1000 - start.size(), 'a') + "\r\n\r\n");
  EXPECT_EQ(client.ReadReply().status, 200);
  client.Send(start + std::string(1001 - start.size(), 'a') + "\r\n\r\n");
  const HttpReply reply = client.ReadReply();
  EXPECT_EQ(reply.status, 431);
  EXPECT_EQ(ErrorCode(reply), "headers_too_large");
  EXPECT_TRUE(client.AtEnd());

  HttpClient endless(port());
  endless.Send(start + std::string(1100, 'a'));
  EXPECT_EQ(endless.ReadReply().status, 431);
}

TEST_F(HttpServerTest, TakesABodyUpToTheLimitAndRefusesMoreWithoutReadingIt) {
  Start({.body_bytes_max = 1000});
  HttpClient client(port());
  EXPECT_EQ(client.Post("/now", std::string(1000, 'a')).status, 200);
  client.Send("POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n");
  const HttpReply reply = client.ReadReply();
  EXPECT_EQ(reply.status, 413);
  EXPECT_EQ(ErrorCode(reply), "request_too_large");
  EXPECT_THAT(reply.body, HasSubstr("1000"));
  EXPECT_TRUE(client.AtEnd());

  HttpClient chunked(port());
  chunked.Send("POST /now HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n");
  EXPECT_EQ(chunked.ReadReply().status, 413);

  HttpClient careful(port());
  careful.Send(
      "POST /now HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1001\r\n\r\n");
  EXPECT_EQ(careful.ReadReply().status, 413);
}

TEST_F(HttpServerTest, DeliversTheRefusalToAClientThatSendsItsWholeBodyFirst) {
  Start({.body_bytes_max = 1000});
  HttpClient client(port());
  ASSERT_TRUE(client.Send("POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n"));
  ASSERT_TRUE(client.Send(std::string(20'000'000, 'a')));
  EXPECT_EQ(client.ReadReply().status, 413);
}

TEST_F(HttpServerTest, EndsARequestThatDoesNotArriveInTime) {
  Start({.read_idle_ms_max = 50});
  HttpClient head(port());
  head.Send("GET /now HT");
  EXPECT_EQ(head.ReadReply().status, 408);
  EXPECT_TRUE(head.AtEnd());

  HttpClient body(port());
  body.Send("POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  const HttpReply reply = body.ReadReply();
  EXPECT_EQ(reply.status, 408);
  EXPECT_EQ(ErrorCode(reply), "request_timeout");
}

TEST_F(HttpServerTest, ClosesAnIdleConnectionWithoutAWord) {
  Start({.read_idle_ms_max = 50});
  HttpClient client(port());
  EXPECT_EQ(client.Get("/now").status, 200);
  EXPECT_TRUE(client.AtEnd());
}

TEST_F(HttpServerTest, LetsAHandlerTakeLongerThanTheIdleLimit) {
  Start({.read_idle_ms_max = 30});
  HttpClient slow(port());
  slow.Send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::shared_ptr<HttpResponder> responder = Next().responder;
  HttpClient idle(port());
  EXPECT_TRUE(idle.AtEnd());  // more than the limit has passed
  responder->Send({200, {}, "late"});
  EXPECT_EQ(slow.ReadReply().body, "late");
}

TEST_F(HttpServerTest, RefusesConnectionsAboveTheLimitUntilOneLeaves) {
  Start({.connections_max = 2});
  HttpClient first(port());
  auto second = std::make_unique<HttpClient>(port());
  EXPECT_EQ(first.Get("/now").status, 200);
  EXPECT_EQ(second->Get("/now").status, 200);
  HttpClient third(port());
  const HttpReply refused = third.ReadReply();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(ErrorCode(refused), "too_many_connections");
  EXPECT_TRUE(third.AtEnd());
  third.Close();
  EXPECT_EQ(first.Get("/now").status, 200);

  second->Send("GET /leaves HTTP/1.1\r\nHost: x\r\n\r\n");
  Signal gone;
  const std::shared_ptr<HttpResponder> responder = Next().responder;
  responder->OnGone(gone.Callback());
  second.reset();
  ASSERT_TRUE(gone.Wait());
  // The refused one may still be on its way out.
  int status = 0;
  for (int i = 0; i < 1000 && status != 200; ++i) status = HttpClient(port()).Get("/now").status;
  EXPECT_EQ(status, 200);
}

TEST_F(HttpServerTest, StreamsChunksFromAnotherThreadInOrder) {
  Start();
  HttpClient client(port());
  client.Send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::shared_ptr<HttpResponder> responder = Next().responder;
  responder->StartStream(200, {{"content-type", "text/event-stream"}});
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    const std::string piece = "data: " + std::to_string(i) + "\n\n";
    EXPECT_TRUE(responder->Write(piece));
    expected += piece;
  }
  responder->Finish();
  EXPECT_FALSE(responder->Write("after the end"));
  const HttpReply reply = client.ReadReply();
  EXPECT_EQ(reply.headers.at("transfer-encoding"), "chunked");
  EXPECT_EQ(reply.headers.at("content-type"), "text/event-stream");
  EXPECT_EQ(reply.body, expected);
  EXPECT_EQ(client.Get("/now").status, 200);
}

TEST_F(HttpServerTest, SendsAStreamsPiecesAsTheyAreWritten) {
  Start();
  HttpClient client(port());
  client.Send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::shared_ptr<HttpResponder> responder = Next().responder;
  responder->StartStream(200, {});
  responder->Write("one");
  EXPECT_EQ(client.ReadHead().status, 200);
  EXPECT_EQ(client.ReadChunk(), "one");
  responder->Write("two");
  EXPECT_EQ(client.ReadChunk(), "two");
  responder->Finish();
  EXPECT_EQ(client.ReadChunk(), "");
}

TEST_F(HttpServerTest, CutsAnAbortedStreamAfterWhatWasWritten) {
  Start();
  HttpClient client(port());
  client.Send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::shared_ptr<HttpResponder> responder = Next().responder;
  responder->StartStream(200, {});
  responder->Write("data: {\"error\":{}}\n\n");
  responder->Abort();
  EXPECT_EQ(client.ReadHead().status, 200);
  EXPECT_EQ(client.ReadChunk(), "data: {\"error\":{}}\n\n");
  EXPECT_EQ(client.ReadChunk(), "<cut>");
  EXPECT_TRUE(client.AtEnd());
}

TEST_F(HttpServerTest, AnswersAnErrorInsteadOfAStreamOfWhichNothingHasLeft) {
  Start();
  HttpClient client(port());
  client.Send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  std::shared_ptr<HttpResponder> responder = Next().responder;
  responder->StartStream(200, {});
  EXPECT_TRUE(responder->SendInstead({429, {}, "full"}));
  EXPECT_FALSE(responder->SendInstead({429, {}, "twice"}));
  EXPECT_EQ(client.ReadReply().status, 429);

  client.Send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  responder = Next().responder;
  responder->StartStream(200, {});
  responder->Write("a");
  EXPECT_EQ(client.ReadHead().status, 200);
  EXPECT_FALSE(responder->SendInstead({429, {}, "too late"}));
  responder->Finish();
  EXPECT_EQ(client.ReadChunk(), "a");
  EXPECT_EQ(client.ReadChunk(), "");
}

TEST_F(HttpServerTest, PingsASilentStream) {
  Start();
  HttpClient client(port());
  client.Send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::shared_ptr<HttpResponder> responder = Next().responder;
  responder->SetPing(20, ": ping\n\n");
  responder->StartStream(200, {});
  EXPECT_EQ(client.ReadHead().status, 200);
  EXPECT_EQ(client.ReadChunk(), ": ping\n\n");
  EXPECT_EQ(client.ReadChunk(), ": ping\n\n");
  EXPECT_FALSE(responder->SendInstead({500, {}, ""}));
  responder->SetPing(0, "");
  responder->Finish();
  std::string chunk = client.ReadChunk();
  while (chunk == ": ping\n\n") chunk = client.ReadChunk();
  EXPECT_EQ(chunk, "");
  EXPECT_EQ(client.Get("/now").status, 200);
}

TEST_F(HttpServerTest, Answers500WhenTheResponderIsDroppedBeforeItsReply) {
  Start();
  HttpClient client(port());
  client.Send("GET /drop HTTP/1.1\r\nHost: x\r\n\r\n");
  Next().responder.reset();
  EXPECT_EQ(ErrorCode(client.ReadReply()), "internal_error");
  EXPECT_EQ(client.Get("/now").status, 200);
}

TEST_F(HttpServerTest, CutsTheStreamWhenItsResponderIsDropped) {
  Start();
  HttpClient client(port());
  client.Send("GET /drop HTTP/1.1\r\nHost: x\r\n\r\n");
  std::shared_ptr<HttpResponder> responder = Next().responder;
  responder->StartStream(200, {});
  responder->Write("a");
  EXPECT_EQ(client.ReadHead().status, 200);
  EXPECT_EQ(client.ReadChunk(), "a");
  responder.reset();
  EXPECT_EQ(client.ReadChunk(), "<cut>");
}

TEST_F(HttpServerTest, TellsThatAWaitingClientClosed) {
  Start();
  HttpClient client(port());
  client.Send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::shared_ptr<HttpResponder> responder = Next().responder;
  Signal gone;
  responder->OnGone(gone.Callback());
  EXPECT_FALSE(gone.IsSet());
  client.Close();
  ASSERT_TRUE(gone.Wait());
  responder->Send({200, {}, "nobody reads this"});
}

TEST_F(HttpServerTest, TellsThatAWaitingClientReset) {
  Start();
  HttpClient client(port());
  client.Send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::shared_ptr<HttpResponder> responder = Next().responder;
  Signal gone;
  responder->OnGone(gone.Callback());
  client.Reset();
  EXPECT_TRUE(gone.Wait());
}

TEST_F(HttpServerTest, TellsThatAClientLeftItsStreamAndRefusesFurtherBytes) {
  Start();
  HttpClient client(port());
  client.Send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::shared_ptr<HttpResponder> responder = Next().responder;
  Signal gone;
  responder->OnGone(gone.Callback());
  responder->StartStream(200, {});
  EXPECT_TRUE(responder->Write("a"));
  EXPECT_EQ(client.ReadHead().status, 200);
  client.Close();
  ASSERT_TRUE(gone.Wait());
  EXPECT_FALSE(responder->Write("b"));
  responder->Finish();
  Signal at_once;
  responder->OnGone(at_once.Callback());
  EXPECT_TRUE(at_once.IsSet());
}

TEST_F(HttpServerTest, DoesNotCallBackAfterTheReplyIsOver) {
  Start();
  HttpClient client(port());
  client.Send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::shared_ptr<HttpResponder> responder = Next().responder;
  Signal gone;
  responder->OnGone(gone.Callback());
  responder->Send({200, {}, "done"});
  EXPECT_EQ(client.ReadReply().body, "done");
  client.Close();
  server_->Stop();
  EXPECT_FALSE(gone.IsSet());
}

TEST_F(HttpServerTest, DropsAClientThatTakesNothing) {
  Start({.write_stuck_ms_max = 50});
  HttpClient client(port());
  client.ShrinkReceiveBuffer();
  client.Send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::shared_ptr<HttpResponder> responder = Next().responder;
  Signal gone;
  responder->OnGone(gone.Callback());
  responder->StartStream(200, {});
  responder->Write(std::string(8 << 20, 'a'));
  EXPECT_GT(responder->buffered_bytes(), 0u);
  ASSERT_TRUE(gone.Wait());
  EXPECT_FALSE(responder->Write("b"));
}

TEST_F(HttpServerTest, BoundsWhatAStreamBuffers) {
  Start({.stream_bytes_max = 1000});
  HttpClient client(port());
  client.Send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::shared_ptr<HttpResponder> responder = Next().responder;
  Signal gone;
  responder->OnGone(gone.Callback());
  responder->StartStream(200, {});
  EXPECT_FALSE(responder->Write(std::string(1001, 'a')));
  EXPECT_TRUE(gone.Wait());
}

TEST_F(HttpServerTest, DeliversALargeReply) {
  Start();
  HttpClient client(port());
  client.Send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  std::string body(8 << 20, 'x');
  body.back() = 'y';
  Next().responder->Send({200, {}, body});
  EXPECT_TRUE(client.ReadReply().body == body);
}

TEST_F(HttpServerTest, ServesAHundredConnectionsAtOnce) {
  Start();
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 100; ++i) {
    clients.push_back(std::make_unique<HttpClient>(port()));
    clients.back()->Send("GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  for (int i = 0; i < 100; ++i) {
    Exchange exchange = Next();
    exchange.responder->Send({200, {}, exchange.request.path});
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(clients[i]->ReadReply().body, "/" + std::to_string(i));
  EXPECT_EQ(server_->open_connections(), 100);
}

TEST_F(HttpServerTest, StopsAcceptingAndLetsOpenRequestsEnd) {
  Start();
  HttpClient client(port());
  client.Send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::shared_ptr<HttpResponder> responder = Next().responder;
  server_->StopAccepting();
  EXPECT_FALSE(HttpClient(port()).connected());
  responder->Send({200, {}, "last"});
  const HttpReply reply = client.ReadReply();
  EXPECT_EQ(reply.body, "last");
  EXPECT_EQ(reply.headers.at("connection"), "close");
  EXPECT_TRUE(client.AtEnd());
}

TEST_F(HttpServerTest, StoppingStillDeliversWhatWasSaidInFull) {
  Start();
  HttpClient client(port());
  client.Send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  HttpClient other(port());
  const std::shared_ptr<HttpResponder> stream = Next().responder;
  other.Send("GET /whole HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::shared_ptr<HttpResponder> whole = Next().responder;
  stream->StartStream(200, {});
  stream->Write("data: [DONE]\n\n");
  stream->Finish();
  whole->Send({200, {}, "whole"});
  server_->Stop();
  EXPECT_EQ(client.ReadReply().body, "data: [DONE]\n\n");
  EXPECT_EQ(other.ReadReply().body, "whole");
  EXPECT_TRUE(other.AtEnd());
}

TEST_F(HttpServerTest, StoppingDoesNotWaitForAClientThatTakesNothing) {
  Start();
  HttpClient client(port());
  client.ShrinkReceiveBuffer();
  client.Send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  Next().responder->Send({200, {}, std::string(64 << 20, 'a')});
  server_->Stop();
  EXPECT_EQ(server_->open_connections(), 0);
}

TEST_F(HttpServerTest, StopsWithRequestsWaitingAndStreamsOpen) {
  Start();
  HttpClient waits(port());
  HttpClient streams(port());
  HttpClient half(port());
  waits.Send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::shared_ptr<HttpResponder> waiting_one = Next().responder;
  streams.Send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::shared_ptr<HttpResponder> stream = Next().responder;
  half.Send("GET /half");
  Signal first, second;
  waiting_one->OnGone(first.Callback());
  stream->OnGone(second.Callback());
  stream->StartStream(200, {});
  stream->Write("a");
  server_->Stop();
  EXPECT_TRUE(first.IsSet());
  EXPECT_TRUE(second.IsSet());
  EXPECT_EQ(server_->open_connections(), 0);
  server_.reset();
  EXPECT_FALSE(stream->Write("b"));
  waiting_one->Send({200, {}, "nobody"});
  EXPECT_TRUE(waits.AtEnd());
}

TEST_F(HttpServerTest, SurvivesClientsThatLeaveWhileOthersWrite) {
  Start();
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<HttpClient>> clients;
    std::vector<std::thread> writers;
    std::vector<Signal> gone(8);
    for (int i = 0; i < 8; ++i) {
      clients.push_back(std::make_unique<HttpClient>(port()));
      clients.back()->Send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
      const std::shared_ptr<HttpResponder> responder = Next().responder;
      responder->OnGone(gone[i].Callback());
      writers.emplace_back([responder] {
        responder->StartStream(200, {});
        while (responder->Write("data: x\n\n")) {
        }
      });
    }
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(clients[i]->ReadHead().status, 200);
      i % 2 == 0 ? clients[i]->Reset() : clients[i]->Close();
    }
    for (Signal& signal : gone) EXPECT_TRUE(signal.Wait());
    for (std::thread& writer : writers) writer.join();
  }
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
