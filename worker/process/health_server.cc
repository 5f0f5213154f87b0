#include "worker/process/health_server.h"

#include <utility>

namespace levin {
namespace {

HttpResponse Text(int status, std::string body) {
  return {.status = status,
          .headers = {{"content-type", "text/plain; charset=utf-8"}},
          .body = std::move(body) + "\n"};
}

HttpResponse Readiness(const HealthView& view) {
  return view.ready ? Text(200, "ready")
                    : Text(503, "not ready: " + (view.why.empty() ? view.phase : view.why));
}

HttpResponse Startup(const HealthView& view) {
  const int64_t percent = view.bytes_total > 0 ? view.bytes_done * 100 / view.bytes_total : 0;
  const bool started = view.phase == "ready" || view.phase == "draining";
  return Text(started ? 200 : 503, view.phase + ", loaded " + std::to_string(percent) + "% (" +
                                       std::to_string(view.bytes_done) + " of " +
                                       std::to_string(view.bytes_total) + " bytes)");
}

}  // namespace

HttpResponse AnswerHealth(const HealthSource& source, const HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") return Text(405, "only GET and HEAD");
  if (request.path == "/metrics") {
    return {.status = 200,
            .headers = {{"content-type", "text/plain; version=0.0.4; charset=utf-8"}},
            .body = source.metrics()};
  }
  const HealthView view = source.view();
  if (request.path == "/livez")
    return view.live ? Text(200, "alive") : Text(503, "not alive: " + view.why);
  if (request.path == "/readyz" || request.path == "/health") return Readiness(view);
  if (request.path == "/startupz") return Startup(view);
  return Text(404, "no such page: /livez, /readyz, /health, /startupz and /metrics exist");
}

Result<std::unique_ptr<HttpServer>> StartHealthServer(const std::string& host, int port,
                                                      HealthSource source) {
  HttpServerOptions options;
  options.host = host;
  options.port = static_cast<uint16_t>(port);
  options.threads = 1;
  options.connections_max = 64;
  options.body_bytes_max = 4096;
  return HttpServer::Start(
      options,
      [source = std::move(source)](HttpRequest request, std::shared_ptr<HttpResponder> responder) {
        responder->Send(AnswerHealth(source, request));
      });
}

}  // namespace levin
