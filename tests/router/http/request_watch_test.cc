#include "router/http/request_watch.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/http/outbox.h"

namespace levin {
namespace {

class RequestWatchTest : public ::testing::Test {
 protected:
  // A request that reaches the handler, and what its connection would write.
  std::shared_ptr<Outbox> Arrive(const char* path) {
    auto outbox = std::make_shared<Outbox>([] {}, 1000);
    const HttpHandler handler =
        watch_.Wrap([this](HttpRequest, std::shared_ptr<HttpResponder> responder) {
          responders_.push_back(std::move(responder));
        });
    HttpRequest request;
    request.method = "GET";
    request.path = path;
    handler(std::move(request), MakeResponder(outbox));
    return outbox;
  }

  SystemClock clock_;
  std::vector<RequestEnd> ends_;
  int idle_ = 0;
  RequestWatch watch_{clock_, [this](const RequestEnd& end) { ends_.push_back(end); },
                      [this] { ++idle_; }};
  std::vector<std::shared_ptr<HttpResponder>> responders_;
};

TEST_F(RequestWatchTest, TellsHowARequestEndedAndWhenNoneIsLeft) {
  const auto first = Arrive("/a");
  const auto second = Arrive("/b");
  EXPECT_EQ(watch_.in_flight(), 2);
  responders_[1]->Send({404, {}, "no"});
  responders_.pop_back();
  EXPECT_EQ(watch_.in_flight(), 1);
  EXPECT_EQ(idle_, 0);
  responders_[0]->StartStream(200, {});
  EXPECT_TRUE(responders_[0]->Write("x"));
  responders_[0]->Finish();
  responders_.clear();
  EXPECT_EQ(watch_.in_flight(), 0);
  EXPECT_EQ(idle_, 1);
  ASSERT_EQ(ends_.size(), 2u);
  EXPECT_EQ(ends_[0].path, "/b");
  EXPECT_EQ(ends_[0].status, 404);
  EXPECT_EQ(ends_[1].method, "GET");
  EXPECT_EQ(ends_[1].status, 200);
  EXPECT_GE(ends_[1].seconds, 0);
  EXPECT_EQ(first->Take().bytes, "x");
  EXPECT_EQ(second->Take().head->status, 404);
}

TEST_F(RequestWatchTest, ARequestWithoutAnAnswerEndsWithStatusZero) {
  const auto outbox = Arrive("/a");
  outbox->Close();
  responders_.clear();
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_EQ(ends_[0].status, 0);
}

TEST_F(RequestWatchTest, PassesPingsAndReplacedStreamsOn) {
  const auto silent = Arrive("/a");
  responders_[0]->SetPing(5, ": ping\n\n");
  responders_[0]->StartStream(200, {});
  EXPECT_EQ(silent->TakePing().bytes, ": ping\n\n");
  EXPECT_FALSE(responders_[0]->SendInstead({500, {}, ""}));
  responders_[0]->Finish();

  const auto replaced = Arrive("/b");
  responders_[1]->StartStream(200, {});
  EXPECT_TRUE(responders_[1]->SendInstead({503, {}, ""}));
  EXPECT_EQ(replaced->Take().head->status, 503);
  responders_.clear();
  ASSERT_EQ(ends_.size(), 2u);
  EXPECT_EQ(ends_[0].status, 200);
  EXPECT_EQ(ends_[1].status, 503);
}

}  // namespace
}  // namespace levin
