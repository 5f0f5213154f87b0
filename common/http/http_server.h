// HTTP/1.1 with keep-alive, whole and streamed replies, over Asio and Beast's parser (both live in
// http_server.cc alone). The router's API and every rank's health and metrics are served by it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"

namespace levin {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;  // upper case
  std::string path;    // as sent, percent-encoding kept, without the query
  std::string query;   // behind '?', may be empty
  HttpHeaders headers; // names in lower case
  std::string body;
  std::string peer;    // address of the client, for the log

  // "" when absent; `name` in lower case.
  std::string_view Header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  HttpHeaders headers;  // content-length and connection are added
  std::string body;
};

// The reply to one request. Any thread may call any method; exactly one of Send or StartStream …
// Finish/Abort ends it. When all references are dropped without an end, the client gets a 500 (or
// its stream is cut).
class HttpResponder {
 public:
  virtual ~HttpResponder() = default;
  virtual void Send(HttpResponse response) = 0;
  virtual void StartStream(int status, HttpHeaders headers) = 0;
  // Queues bytes of a chunked body. False when the client is gone (or the reply is over).
  virtual bool Write(std::string bytes) = 0;
  virtual size_t buffered_bytes() const = 0;  // queued and not yet handed to the socket
  virtual void Finish() = 0;  // the terminating chunk
  virtual void Abort() = 0;   // closes the connection without it: an error after the first byte
  // Called once, from a server thread, when the client leaves before the end (FIN, RST, or a write
  // stuck for longer than the limit); at once if it is gone already.
  virtual void OnGone(std::function<void()> callback) = 0;
};

// Runs on a server thread; must not block. The responder may be kept and answered later.
using HttpHandler = std::function<void(HttpRequest, std::shared_ptr<HttpResponder>)>;

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 0;  // 0: any free one
  int threads = 2;
  size_t header_bytes_max = 64 * 1024;
  size_t body_bytes_max = 32u << 20;
  int connections_max = 4096;
  int64_t write_stuck_ms_max = 60'000;
  int64_t read_idle_ms_max = 120'000;  // of a keep-alive connection, and of a request that dribbles
};

class HttpServer {
 public:
  // Binds before it returns: a taken port is kUnavailable with reason PORT_IN_USE, naming the address.
  static Result<std::unique_ptr<HttpServer>> Start(HttpServerOptions options, HttpHandler handler);
  virtual ~HttpServer() = default;  // stops
  virtual uint16_t port() const = 0;
  virtual void StopAccepting() = 0;  // first part of a drain: open connections go on
  virtual void Stop() = 0;           // closes everything, joins the threads
  virtual int open_connections() const = 0;
};

}  // namespace levin
