// Streams, slow readers, clients that leave.
#include <thread>
#include <vector>

#include "tests/common/http/http_server_fixture.h"

namespace levin {
namespace {

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

}  // namespace
}  // namespace levin
