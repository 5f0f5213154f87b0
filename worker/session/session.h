// The writing half of one opened Session: one outstanding write, a bounded queue behind it. The
// reactor that owns the stream is its door; whoever comes later finds a closed door and is dropped.
// Any thread may call any method.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "worker/session/session_queue.h"

namespace levin {

// Implemented over a gRPC stream and by a fake in tests. Called under the Session's lock: must not
// call back. `frame` is encoded before StartWrite returns.
class SessionDoor {
 public:
  virtual ~SessionDoor() = default;
  virtual void StartWrite(const OutFrame& frame) = 0;  // then Session::OnWriteDone, once
  virtual void Finish(const Status& status) = 0;       // at most once, never beside a write
  virtual void Cancel() = 0;                           // the peer does not take what was written
};

class Session final {
 public:
  static constexpr Duration kWriteStuck = std::chrono::seconds(10);
  static constexpr Duration kCloseStuck = std::chrono::seconds(1);

  // `door` must stay until Detach.
  Session(uint32_t router, SessionDoor& door, const Clock& clock)
      : router_(router), clock_(clock), door_(&door) {}

  uint32_t router() const { return router_; }

  // Above kSessionBacklogBytesMax the Session ends with SLOW_ROUTER: its router may open another.
  void Send(std::vector<decltype(RouterEvent::what)> events) EXCLUDES(mutex_);
  template <typename Level>
  void SendLevel(Level level) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (closing_) return;
    queue_.Push(std::move(level));
    WriteNext();
  }

  // What waits still leaves, then the stream ends with `status`. The first call decides.
  void Close(Status status) EXCLUDES(mutex_);

  void OnWriteDone(bool ok) EXCLUDES(mutex_);
  void Detach() EXCLUDES(mutex_);  // the stream is over; the door is not touched again

  // Each second: cuts a stream whose peer took no frame for kWriteStuck (kCloseStuck when closing).
  void Tick() EXCLUDES(mutex_);

  // Did the peer end the stream by its half-close, before we had a reason to?
  bool ended_by_peer() const EXCLUDES(mutex_);

 private:
  void WriteNext() REQUIRES(mutex_);
  void CloseLocked(Status status) REQUIRES(mutex_);

  const uint32_t router_;
  const Clock& clock_;
  mutable Mutex mutex_;
  SessionDoor* door_ GUARDED_BY(mutex_);
  SessionQueue queue_ GUARDED_BY(mutex_);
  bool writing_ GUARDED_BY(mutex_) = false;
  bool closing_ GUARDED_BY(mutex_) = false;
  bool finished_ GUARDED_BY(mutex_) = false;
  Status end_ GUARDED_BY(mutex_);
  TimePoint write_began_ GUARDED_BY(mutex_);
  TimePoint close_began_ GUARDED_BY(mutex_);
};

}  // namespace levin
