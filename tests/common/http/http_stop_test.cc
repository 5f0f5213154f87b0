// How the server stops, and ends under many clients.
#include <thread>
#include <vector>

#include "tests/common/http/http_server_fixture.h"

namespace levin {
namespace {

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

}  // namespace
}  // namespace levin
