#include "worker/process/health_server.h"

#include <gtest/gtest.h>

namespace levin {
namespace {

class HealthTest : public ::testing::Test {
 protected:
  int Ask(const std::string& path, const std::string& method = "GET") {
    const HealthSource source{[this] { return view_; },
                              [] { return std::string("levin_epoch 7\n"); }};
    HttpRequest request;
    request.method = method;
    request.path = path;
    const HttpResponse response = AnswerHealth(source, request);
    body_ = response.body;
    return response.status;
  }

  HealthView view_;
  std::string body_;
};

TEST_F(HealthTest, WhileItLoadsAWorkerIsAliveAndNotReady) {
  view_.phase = "loading";
  view_.bytes_done = 25;
  view_.bytes_total = 100;
  EXPECT_EQ(Ask("/livez"), 200);
  EXPECT_EQ(Ask("/readyz"), 503);
  EXPECT_NE(body_.find("loading"), std::string::npos);
  EXPECT_EQ(Ask("/health"), 503);
  EXPECT_EQ(Ask("/startupz"), 503);
  EXPECT_NE(body_.find("25%"), std::string::npos);
}

TEST_F(HealthTest, AWarmWorkerIsReady) {
  view_.phase = "ready";
  view_.ready = true;
  for (const char* path : {"/livez", "/readyz", "/health", "/startupz"})
    EXPECT_EQ(Ask(path), 200) << path;
}

TEST_F(HealthTest, ASuspectRankMakesTheGroupNotReadyButNotDead) {
  view_.phase = "ready";
  view_.why = "a rank was not heard for 3 s";
  EXPECT_EQ(Ask("/readyz"), 503);
  EXPECT_NE(body_.find("not heard"), std::string::npos);
  EXPECT_EQ(Ask("/livez"), 200);
}

TEST_F(HealthTest, AHungEngineIsNotAlive) {
  view_.live = false;
  EXPECT_EQ(Ask("/livez"), 503);
}

TEST_F(HealthTest, MetricsAndWrongPages) {
  EXPECT_EQ(Ask("/metrics"), 200);
  EXPECT_EQ(body_, "levin_epoch 7\n");
  EXPECT_EQ(Ask("/elsewhere"), 404);
  EXPECT_EQ(Ask("/livez", "POST"), 405);
  EXPECT_EQ(Ask("/livez", "HEAD"), 200);
}

TEST_F(HealthTest, ATakenPortIsRefused) {
  const HealthSource source{[this] { return view_; }, [] { return std::string(); }};
  const auto first = StartHealthServer("127.0.0.1", 0, source);
  ASSERT_TRUE(first);
  const auto second = StartHealthServer("127.0.0.1", (*first)->port(), source);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason(), "PORT_IN_USE");
}

}  // namespace
}  // namespace levin
