// A rank's /livez, /readyz, /health, /startupz and /metrics (operations.md 5). The handlers read
// what others keep; they wait for nobody and touch no engine lock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/http/http_server.h"

namespace levin {

struct HealthView {
  bool live = true;  // a restart would not help
  bool ready = false;
  std::string phase;  // joining, loading, warming, ready, draining
  std::string why;    // not live or not ready because
  int64_t bytes_done = 0, bytes_total = 0;
};

// Both are called on server threads.
struct HealthSource {
  std::function<HealthView()> view;
  std::function<std::string()> metrics;  // Prometheus text, version 0.0.4
};

// The answers, apart from any socket.
HttpResponse AnswerHealth(const HealthSource& source, const HttpRequest& request);

// The server stops when it is dropped. A taken port: PORT_IN_USE.
Result<std::unique_ptr<HttpServer>> StartHealthServer(const std::string& host, int port,
                                                      HealthSource source);

}  // namespace levin
