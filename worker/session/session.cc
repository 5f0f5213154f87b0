#include "worker/session/session.h"

#include <utility>

#include "common/rpc/limits.h"

namespace levin {

void Session::Send(std::vector<decltype(RouterEvent::what)> events) {
  MutexLock lock(mutex_);
  if (closing_) return;
  for (auto& event : events) queue_.Push(std::move(event));
  WriteNext();
  if (queue_.bytes() > kSessionBacklogBytesMax) {
    CloseLocked(Status(Code::kResourceExhausted, "SLOW_ROUTER",
                       "the router reads too slowly: " + std::to_string(queue_.bytes()) +
                           " bytes wait, at most " + std::to_string(kSessionBacklogBytesMax) +
                           " may"));
  }
}

void Session::Close(Status status) {
  MutexLock lock(mutex_);
  CloseLocked(std::move(status));
}

void Session::CloseLocked(Status status) {
  if (closing_) return;
  closing_ = true;
  close_began_ = clock_.Now();
  end_ = std::move(status);
  WriteNext();
}

void Session::WriteNext() {
  if (writing_ || finished_ || door_ == nullptr) return;
  if (std::optional<OutFrame> frame = queue_.Take()) {
    writing_ = true;
    write_began_ = clock_.Now();
    door_->StartWrite(*frame);
  } else if (closing_) {
    finished_ = true;
    door_->Finish(end_);
  }
}

void Session::OnWriteDone(bool ok) {
  MutexLock lock(mutex_);
  writing_ = false;
  if (!ok) {  // broken: nothing that waits can leave
    queue_ = SessionQueue();
    CloseLocked(Status(Code::kUnavailable, "the stream broke"));
  }
  WriteNext();
}

void Session::Detach() {
  MutexLock lock(mutex_);
  door_ = nullptr;
  CloseLocked(Status(Code::kUnavailable, "the stream broke"));  // unless it was closed before
  finished_ = true;
  queue_ = SessionQueue();
}

void Session::Tick() {
  MutexLock lock(mutex_);
  if (!writing_ || door_ == nullptr) return;
  const TimePoint now = clock_.Now();
  const bool stuck = now - write_began_ > kWriteStuck;
  if (stuck || (closing_ && now - close_began_ > kCloseStuck && now - write_began_ > kCloseStuck))
    door_->Cancel();
}

bool Session::ended_by_peer() const {
  MutexLock lock(mutex_);
  return closing_ && end_.ok();
}

}  // namespace levin
