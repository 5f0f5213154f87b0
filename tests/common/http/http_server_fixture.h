// A server on a port of its own whose requests wait for the test to answer them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "common/base/mailbox.h"
#include "common/http/http_server.h"
#include "tests/support/http_client.h"

namespace levin {

using ::testing::HasSubstr;
using testing::HttpClient;
using testing::HttpReply;

struct Exchange {
  HttpRequest request;
  std::shared_ptr<HttpResponder> responder;
};

inline std::chrono::steady_clock::time_point InTenSeconds() {
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

inline std::string ErrorCode(const HttpReply& reply) {
  const size_t at = reply.body.find("\"code\":\"");
  if (at == std::string::npos) return "no code in: " + reply.body;
  return reply.body.substr(at + 8, reply.body.find('"', at + 8) - at - 8);
}

}  // namespace levin
