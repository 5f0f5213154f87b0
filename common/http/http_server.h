// HTTP/1.1 with keep-alive, whole and streamed replies, over Asio and Beast's parser (both live in
// common/http alone). The router's API and every rank's health and metrics are served by it.
//
// What the server answers itself, in OpenAI's error shape, closing the connection: 400 malformed,
// 408 too slow, 413 body over the limit (not read), 417 unknown expectation, 431 headers over the
// limit, 501 transfer coding other than chunked, 503 too many connections, 505 other versions.
// Each carries x-request-id: the client's, else one made up.
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
  std::string method;   // upper case
  std::string path;     // as sent, percent-encoding kept, without the query
  std::string query;    // behind '?', may be empty
  HttpHeaders headers;  // names in lower case
  std::string body;
  std::string peer;  // address of the client, for the log

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
// its stream is cut). A callback given to OnGone must not own the responder.
class HttpResponder {
 public:
  virtual ~HttpResponder() = default;
  virtual void Send(HttpResponse response) = 0;
  // Status and headers leave with the first Write, ping or end, not before.
  virtual void StartStream(int status, HttpHeaders headers) = 0;
  // A whole reply, also in place of a started stream as long as nothing of it has left. False when
  // it has (or the reply is over): the error then has to be said inside the stream.
  virtual bool SendInstead(HttpResponse response) {
    static_cast<void>(response);
    return false;
  }
  // While the stream is silent for `interval_ms`, the server writes `bytes` (and, if nothing has
  // left yet, status and headers before them). 0 turns it off. Once, before or after StartStream.
  virtual void SetPing(int64_t interval_ms, std::string bytes) {
    static_cast<void>(interval_ms);
    static_cast<void>(bytes);
  }
  // Queues bytes of a chunked body. False when the client is gone (or the reply is over).
  virtual bool Write(std::string bytes) = 0;
  virtual size_t buffered_bytes() const = 0;  // queued and not yet taken by the socket
  virtual void Finish() = 0;                  // the terminating chunk
  // After what is queued has left, closes the connection without the terminating chunk: an error
  // after the first byte.
  virtual void Abort() = 0;
  // Called once, from a server thread, when the client leaves before the end (FIN, RST, a write
  // stuck for longer than the limit, a full buffer) or the server stops; at once if it is gone
  // already. Not called after the end.
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
  size_t stream_bytes_max = 16u << 20;  // unsent bytes of a stream; above, its client is dropped
  int64_t write_stuck_ms_max = 60'000;  // without one byte taken by the client
  // Of a keep-alive connection without a request. A request that has begun must be here within
  // this time plus a second for each 16 KiB of it (else 408).
  int64_t read_idle_ms_max = 120'000;
};

class HttpServer {
 public:
  // Binds before it returns: a taken port is kUnavailable with reason PORT_IN_USE, naming the
  // address.
  static Result<std::unique_ptr<HttpServer>> Start(HttpServerOptions options, HttpHandler handler);
  virtual ~HttpServer() = default;  // stops
  virtual uint16_t port() const = 0;
  // First part of a drain: the port is given back, open connections go on, each reply from now on
  // says `connection: close`.
  virtual void StopAccepting() = 0;
  // Closes everything, joins the threads. Replies that were complete are still written, for at most
  // a second. Not from a server thread.
  virtual void Stop() = 0;
  virtual int open_connections() const = 0;
};

}  // namespace levin
