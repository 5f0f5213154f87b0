// Counts HTTP requests that have come and are not yet answered in full, and tells how each ended.
// Knows nothing of what they ask.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/http/http_server.h"

namespace levin {

struct RequestEnd {
  std::string method, path;
  int status = 0;  // 0: it never got an answer, the client had left
  double seconds = 0;
};

// Any thread.
class RequestWatch final {
 public:
  // `on_end`: once per request, on whatever thread lets go of it. `on_idle`: whenever none is left.
  // Both must not block; the clock must live longer than every responder.
  RequestWatch(const Clock& clock, std::function<void(const RequestEnd&)> on_end,
               std::function<void()> on_idle);

  // The same handler, watched.
  HttpHandler Wrap(HttpHandler handler) const;
  int in_flight() const;

 private:
  struct Core;
  class Responder;
  const std::shared_ptr<Core> core_;
};

}  // namespace levin
