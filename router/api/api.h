// The HTTP API: which path does what, who may, and what everybody else is told. All else is in the
// handlers.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/http/http_server.h"
#include "router/api/api_call.h"
#include "router/dispatch/engine_client.h"
#include "router/inference/api_keys.h"
#include "router/inference/generator.h"

namespace levin {

class RouterMetrics;

struct ApiOptions {
  std::vector<std::string> api_keys = {};          // none: every route is open
  std::function<std::string()> metrics_text = {};  // what /metrics says
  const RouterMetrics* metrics = nullptr;          // must live longer than the HttpApi
  int64_t sse_ping_interval_ms = 0;                // 0: silent streams stay silent
};

// Any thread may call any method. Generator, engine and clock must live longer than the server that
// runs the handler, and so must the HttpApi.
class HttpApi final {
 public:
  HttpApi(Generator& generator, const EngineClient& engine, const Clock& clock, ApiOptions options);

  HttpHandler handler();

  // New requests are refused from now on; those that run go on.
  void Drain() { draining_ = true; }
  // OK when a request would be served now.
  Status ready() const;

 private:
  struct Route;
  static const std::vector<Route>& Routes();

  void Handle(HttpRequest request, std::shared_ptr<HttpResponder> responder);
  void Answer(ApiCall call);
  Status Admit(const Route& route, const HttpRequest& request) const;

  Generator& generator_;
  const EngineClient& engine_;
  const Clock& clock_;
  const ApiKeys keys_;
  const std::function<std::string()> metrics_text_;
  const RouterMetrics* const metrics_;
  const int64_t ping_interval_ms_;
  std::atomic<bool> draining_ = false;
};

}  // namespace levin
