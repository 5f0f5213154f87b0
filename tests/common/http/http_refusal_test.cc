// What the server refuses itself: malformed, too large, too slow, too many.
#include "tests/common/http/http_server_fixture.h"

namespace levin {
namespace {

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

}  // namespace
}  // namespace levin
