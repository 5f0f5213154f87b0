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

  // `text` stands in the body.
  bool WaitForBody(std::string_view text,
                   std::chrono::seconds at_most = std::chrono::seconds(20)) const {
    const auto until = std::chrono::steady_clock::now() + at_most;
    MutexLock lock(mutex_);
    while (body_.find(text) == std::string::npos) {
      if (!changed_.WaitUntil(mutex_, until)) return body_.find(text) != std::string::npos;
    }
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
  void StartStream(int status, HttpHeaders headers) override {
    MutexLock lock(record_->mutex_);
    Begin(status, std::move(headers));
  }
  bool Write(std::string bytes) override {
    MutexLock lock(record_->mutex_);
    CHECK(record_->status_ != 0);
    CHECK(record_->end_ == ReplyRecord::End::kNone);
    record_->body_ += bytes;
    ++record_->writes_;
    record_->changed_.NotifyAll();
    return !record_->gone_;
  }
  size_t buffered_bytes() const override {
    MutexLock lock(record_->mutex_);
    return record_->buffered_bytes_;
  }
  void Finish() override {
    MutexLock lock(record_->mutex_);
    EndLocked(ReplyRecord::End::kFinished);
  }
  void Abort() override {
    MutexLock lock(record_->mutex_);
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

  const std::shared_ptr<ReplyRecord> record_;
};

}  // namespace levin
