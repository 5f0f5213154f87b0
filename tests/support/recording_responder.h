// An HttpResponder that writes down the reply, and whose client leaves when the test says so. The
// record outlives it; any thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/http/http_server.h"

namespace levin {

class ReplyRecord final {
 public:
  enum class End { kNone, kSent, kFinished, kAborted };

  int status() const {
    MutexLock lock(mutex_);
    return status_;
  }
  std::string body() const {
    MutexLock lock(mutex_);
    return body_;
  }
  End end() const {
    MutexLock lock(mutex_);
    return end_;
  }
  int writes() const {
    MutexLock lock(mutex_);
    return writes_;
  }
  // "" when absent.
  std::string Header(std::string_view name) const {
    MutexLock lock(mutex_);
    for (const auto& [key, value] : headers_) {
      if (key == name) return value;
    }
    return {};
  }
  bool WaitForEnd(std::chrono::seconds at_most = std::chrono::seconds(20)) const {
    const auto until = std::chrono::steady_clock::now() + at_most;
    MutexLock lock(mutex_);
    while (end_ == End::kNone) {
      if (!changed_.WaitUntil(mutex_, until)) return end_ != End::kNone;
    }
    return true;
  }

  // The server writes its ping, as it does when a stream is silent; false: none was asked for.
  bool Ping() {
    MutexLock lock(mutex_);
    if (ping_interval_ms_ <= 0) return false;
    body_ += ping_;
    return true;
  }

  void Leave() {
    std::function<void()> callback;
    {
      MutexLock lock(mutex_);
      gone_ = true;
      callback = std::exchange(on_gone_, nullptr);
    }
    if (callback) callback();
  }
  void set_buffered_bytes(size_t bytes) {
    MutexLock lock(mutex_);
    buffered_bytes_ = bytes;
  }

 private:
  friend class RecordingResponder;

  mutable Mutex mutex_;
  mutable CondVar changed_;
  int status_ GUARDED_BY(mutex_) = 0;
  HttpHeaders headers_ GUARDED_BY(mutex_);
  std::string body_ GUARDED_BY(mutex_);
  int writes_ GUARDED_BY(mutex_) = 0;
  End end_ GUARDED_BY(mutex_) = End::kNone;
  bool gone_ GUARDED_BY(mutex_) = false;
  size_t buffered_bytes_ GUARDED_BY(mutex_) = 0;
  int64_t ping_interval_ms_ GUARDED_BY(mutex_) = 0;
  std::string ping_ GUARDED_BY(mutex_);
  std::function<void()> on_gone_ GUARDED_BY(mutex_);
};

class RecordingResponder final : public HttpResponder {
 public:
  explicit RecordingResponder(std::shared_ptr<ReplyRecord> record) : record_(std::move(record)) {}

  void Send(HttpResponse response) override {
    MutexLock lock(record_->mutex_);
    Begin(response.status, std::move(response.headers));
    record_->body_ = std::move(response.body);
    EndLocked(ReplyRecord::End::kSent);
  }
  bool SendInstead(HttpResponse response) override {
    MutexLock lock(record_->mutex_);
    if (record_->status_ != 0 || record_->end_ != ReplyRecord::End::kNone) return false;
    head_.reset();
    Begin(response.status, std::move(response.headers));
    record_->body_ = std::move(response.body);
    EndLocked(ReplyRecord::End::kSent);
    return true;
  }
  void StartStream(int status, HttpHeaders headers) override {
    MutexLock lock(record_->mutex_);
    CHECK(record_->status_ == 0 && !head_);
    head_ = {status, std::move(headers)};  // leaves with the first byte
  }
  void SetPing(int64_t interval_ms, std::string bytes) override {
    MutexLock lock(record_->mutex_);
    record_->ping_interval_ms_ = interval_ms;
    record_->ping_ = std::move(bytes);
  }
  bool Write(std::string bytes) override {
    MutexLock lock(record_->mutex_);
    HeadLeaves();
    CHECK(record_->end_ == ReplyRecord::End::kNone);
    record_->body_ += bytes;
    ++record_->writes_;
    return !record_->gone_;
  }
  size_t buffered_bytes() const override {
    MutexLock lock(record_->mutex_);
    return record_->buffered_bytes_;
  }
  void Finish() override {
    MutexLock lock(record_->mutex_);
    HeadLeaves();
    EndLocked(ReplyRecord::End::kFinished);
  }
  void Abort() override {
    MutexLock lock(record_->mutex_);
    HeadLeaves();
    EndLocked(ReplyRecord::End::kAborted);
  }
  void OnGone(std::function<void()> callback) override {
    {
      MutexLock lock(record_->mutex_);
      if (!record_->gone_) {
        record_->on_gone_ = std::move(callback);
        return;
      }
    }
    callback();
  }

 private:
  void Begin(int status, HttpHeaders headers) REQUIRES(record_->mutex_) {
    CHECK_EQ(record_->status_, 0);  // one reply for one request
    record_->status_ = status;
    record_->headers_ = std::move(headers);
  }
  void EndLocked(ReplyRecord::End end) REQUIRES(record_->mutex_) {
    CHECK(record_->end_ == ReplyRecord::End::kNone);
    CHECK(record_->status_ != 0);
    record_->end_ = end;
    record_->changed_.NotifyAll();
  }

  void HeadLeaves() REQUIRES(record_->mutex_) {
    if (!head_) return;
    Begin(head_->first, std::move(head_->second));
    head_.reset();
  }

  const std::shared_ptr<ReplyRecord> record_;
  std::optional<std::pair<int, HttpHeaders>> head_;  // of a stream, not left; guarded as the record
};

}  // namespace levin
