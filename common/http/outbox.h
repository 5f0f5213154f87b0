// What a handler says to one request, on its way to the connection that writes it. The handler's
// side may be called from any thread, the connection's side from its strand only. Knows no sockets.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/base/mutex.h"
#include "common/http/http_server.h"

namespace levin {

// What the connection is to write next.
struct Outgoing {
  enum class End { kOpen, kFinished, kAborted };

  std::optional<HttpResponse> head;  // status and headers; of a whole reply the body too
  bool whole = false;                // `head` is a whole reply
  std::string bytes;                 // of the stream
  End end = End::kOpen;
  bool overflow = false;  // the client reads too slowly: drop it
};

class Outbox final {
 public:
  // `wake` tells the connection that Take has something new: called with the lock held, from any
  // thread, at most once between two Takes, and never after Close. It must only post.
  // Starts as woken: the connection calls Take after the handler returned.
  // `request_id` is what the client sent, for the answer to a dropped request.
  Outbox(std::function<void()> wake, size_t bytes_max, std::string request_id = {});

  // Handler's side: see HttpResponder.
  void Send(HttpResponse response);
  bool SendInstead(HttpResponse response);
  void StartStream(int status, HttpHeaders headers);
  void SetPing(int64_t interval_ms, std::string bytes);
  bool Write(std::string bytes);
  size_t buffered_bytes() const;
  void Finish();
  void Abort();
  void OnGone(std::function<void()> callback);
  void Dropped();  // the last reference of the handler is gone

  // Connection's side.
  Outgoing Take();
  Outgoing TakePing();      // as Take, with a ping if nothing else is there
  int64_t ping_ms() const;  // 0 while no stream is open or it has no ping
  void Written(size_t stream_bytes);
  bool ended() const;  // the handler has said all
  // No wake from now on. Calls OnGone's callback if the handler has not ended its reply.
  void Close();

 private:
  enum class State { kNew, kStream, kEnded };

  void Wake() REQUIRES(mutex_);
  void Replace(HttpResponse response) REQUIRES(mutex_);
  void End(Outgoing::End end);
  Outgoing TakeLocked() REQUIRES(mutex_);

  const size_t bytes_max_;
  const std::string request_id_;
  mutable Mutex mutex_;
  std::function<void()> wake_ GUARDED_BY(mutex_);  // null once closed
  std::function<void()> gone_callback_ GUARDED_BY(mutex_);
  State state_ GUARDED_BY(mutex_) = State::kNew;
  bool woken_ GUARDED_BY(mutex_) = true;
  bool head_left_ GUARDED_BY(mutex_) = false;
  bool overflowed_ GUARDED_BY(mutex_) = false;
  size_t in_flight_ GUARDED_BY(mutex_) = 0;  // taken and not yet written
  Outgoing next_ GUARDED_BY(mutex_);
  int64_t ping_ms_ GUARDED_BY(mutex_) = 0;
  std::string ping_ GUARDED_BY(mutex_);
};

// The handler's handle: dropping it is noticed.
std::shared_ptr<HttpResponder> MakeResponder(std::shared_ptr<Outbox> outbox);

}  // namespace levin
