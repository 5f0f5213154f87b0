#include "common/http/outbox.h"

#include <utility>

#include "common/base/check.h"
#include "common/http/http_text.h"
#include "common/http/request_id.h"

namespace levin {

Outbox::Outbox(std::function<void()> wake, size_t bytes_max, std::string request_id)
    : bytes_max_(bytes_max), request_id_(std::move(request_id)), wake_(std::move(wake)) {}

void Outbox::Wake() {
  if (woken_ || !wake_) return;
  woken_ = true;
  wake_();
}

void Outbox::Replace(HttpResponse response) {
  next_ = {};
  next_.head = std::move(response);
  next_.whole = true;
  next_.end = Outgoing::End::kFinished;
  state_ = State::kEnded;
  Wake();
}

void Outbox::Send(HttpResponse response) {
  std::function<void()> callback;  // destroyed behind the lock: it may own what calls back here
  MutexLock lock(mutex_);
  if (!wake_) return;
  CHECK(state_ == State::kNew, "a request was answered twice");
  callback = std::exchange(gone_callback_, nullptr);
  Replace(std::move(response));
}

bool Outbox::SendInstead(HttpResponse response) {
  std::function<void()> callback;
  MutexLock lock(mutex_);
  if (!wake_ || state_ == State::kEnded || head_left_) return false;
  callback = std::exchange(gone_callback_, nullptr);
  Replace(std::move(response));
  return true;
}

void Outbox::StartStream(int status, HttpHeaders headers) {
  MutexLock lock(mutex_);
  if (!wake_) return;
  CHECK(state_ == State::kNew, "a request was answered twice");
  state_ = State::kStream;
  next_.head = HttpResponse{status, std::move(headers), {}};
  if (ping_ms_ > 0) Wake();  // so that the connection arms its timer
}

void Outbox::SetPing(int64_t interval_ms, std::string bytes) {
  MutexLock lock(mutex_);
  ping_ms_ = interval_ms;
  ping_ = std::move(bytes);
  if (state_ == State::kStream) Wake();
}

bool Outbox::Write(std::string bytes) {
  MutexLock lock(mutex_);
  if (!wake_ || state_ == State::kEnded || overflowed_) return false;
  CHECK(state_ == State::kStream, "Write without StartStream");
  if (in_flight_ + next_.bytes.size() + bytes.size() > bytes_max_) {
    overflowed_ = next_.overflow = true;
    Wake();
    return false;
  }
  if (next_.bytes.empty()) {
    next_.bytes = std::move(bytes);
  } else {
    next_.bytes += bytes;
  }
  Wake();
  return true;
}

size_t Outbox::buffered_bytes() const {
  MutexLock lock(mutex_);
  return in_flight_ + next_.bytes.size();
}

void Outbox::End(Outgoing::End end) {
  std::function<void()> callback;
  MutexLock lock(mutex_);
  if (!wake_ || state_ == State::kEnded) return;
  CHECK(state_ == State::kStream, "the end of a stream that never started");
  callback = std::exchange(gone_callback_, nullptr);
  state_ = State::kEnded;
  next_.end = end;
  Wake();
}

void Outbox::Finish() { End(Outgoing::End::kFinished); }

void Outbox::Abort() { End(Outgoing::End::kAborted); }

void Outbox::OnGone(std::function<void()> callback) {
  {
    MutexLock lock(mutex_);
    if (state_ == State::kEnded) return;
    if (wake_) {
      std::swap(gone_callback_, callback);
      return;
    }
  }
  callback();
}

void Outbox::Dropped() {
  std::function<void()> callback;
  MutexLock lock(mutex_);
  // After an overflow it is the client that failed: Close is on its way and tells OnGone so.
  if (!wake_ || state_ == State::kEnded || overflowed_) return;
  callback = std::exchange(gone_callback_, nullptr);
  if (!head_left_) {
    HttpResponse reply =
        ErrorReply(500, "internal_error", "the request was dropped without an answer");
    reply.headers.emplace_back("x-request-id", OwnAnswerId(request_id_));
    Replace(std::move(reply));
    return;
  }
  state_ = State::kEnded;
  next_.end = Outgoing::End::kAborted;
  Wake();
}

Outgoing Outbox::TakeLocked() {
  woken_ = false;
  const bool silent = next_.bytes.empty() && next_.end == Outgoing::End::kOpen;
  if (silent && !next_.overflow) return {};  // the head waits for the first byte
  if (next_.head) head_left_ = true;
  in_flight_ += next_.bytes.size();
  return std::exchange(next_, {});
}

Outgoing Outbox::Take() {
  MutexLock lock(mutex_);
  return TakeLocked();
}

Outgoing Outbox::TakePing() {
  MutexLock lock(mutex_);
  if (state_ == State::kStream && next_.bytes.empty() && ping_ms_ > 0) next_.bytes = ping_;
  return TakeLocked();
}

int64_t Outbox::ping_ms() const {
  MutexLock lock(mutex_);
  return state_ == State::kStream ? ping_ms_ : 0;
}

void Outbox::Written(size_t stream_bytes) {
  MutexLock lock(mutex_);
  in_flight_ -= stream_bytes;
}

bool Outbox::ended() const {
  MutexLock lock(mutex_);
  return state_ == State::kEnded;
}

void Outbox::Close() {
  std::function<void()> wake;  // destroyed behind the lock, as it may hold the connection
  std::function<void()> callback;
  {
    MutexLock lock(mutex_);
    wake = std::exchange(wake_, nullptr);
    callback = std::exchange(gone_callback_, nullptr);
    if (state_ == State::kEnded) callback = nullptr;
  }
  if (callback) callback();
}

namespace {

class Responder final : public HttpResponder {
 public:
  explicit Responder(std::shared_ptr<Outbox> outbox) : outbox_(std::move(outbox)) {}
  ~Responder() override { outbox_->Dropped(); }

  void Send(HttpResponse response) override { outbox_->Send(std::move(response)); }
  bool SendInstead(HttpResponse response) override {
    return outbox_->SendInstead(std::move(response));
  }
  void StartStream(int status, HttpHeaders headers) override {
    outbox_->StartStream(status, std::move(headers));
  }
  void SetPing(int64_t interval_ms, std::string bytes) override {
    outbox_->SetPing(interval_ms, std::move(bytes));
  }
  bool Write(std::string bytes) override { return outbox_->Write(std::move(bytes)); }
  size_t buffered_bytes() const override { return outbox_->buffered_bytes(); }
  void Finish() override { outbox_->Finish(); }
  void Abort() override { outbox_->Abort(); }
  void OnGone(std::function<void()> callback) override { outbox_->OnGone(std::move(callback)); }

 private:
  const std::shared_ptr<Outbox> outbox_;
};

}  // namespace

std::shared_ptr<HttpResponder> MakeResponder(std::shared_ptr<Outbox> outbox) {
  return std::make_shared<Responder>(std::move(outbox));
}

}  // namespace levin
