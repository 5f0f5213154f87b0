// A TokenSink that writes down what came. The record outlives the sink; any thread may read it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/mutex.h"
#include "router/dispatch/engine_client.h"

namespace levin {

class SinkRecord final {
 public:
  struct Done {
    Status status;
    FinishReason reason;
    Usage usage;
  };

  std::vector<TokenId> tokens() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return tokens_;
  }
  std::optional<int64_t> admitted() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return admitted_;
  }
  std::optional<Done> done() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return done_;
  }
  int done_count() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return done_count_;
  }
  bool destroyed() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return destroyed_;
  }
  bool in_order() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return in_order_;
  }
  // False when the time is up first.
  bool WaitForDone(std::chrono::seconds at_most = std::chrono::seconds(20)) const EXCLUDES(mutex_) {
    const auto until = std::chrono::steady_clock::now() + at_most;
    MutexLock lock(mutex_);
    while (!done_) {
      if (!changed_.WaitUntil(mutex_, until)) return done_.has_value();
    }
    return true;
  }
  bool WaitForTokens(size_t count, std::chrono::seconds at_most = std::chrono::seconds(20)) const
      EXCLUDES(mutex_) {
    const auto until = std::chrono::steady_clock::now() + at_most;
    MutexLock lock(mutex_);
    while (tokens_.size() < count) {
      if (!changed_.WaitUntil(mutex_, until)) return tokens_.size() >= count;
    }
    return true;
  }

 private:
  friend class RecordingSink;
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<TokenId> tokens_ GUARDED_BY(mutex_);
  std::optional<int64_t> admitted_ GUARDED_BY(mutex_);
  std::optional<Done> done_ GUARDED_BY(mutex_);
  int done_count_ GUARDED_BY(mutex_) = 0;
  bool destroyed_ GUARDED_BY(mutex_) = false;
  bool in_order_ GUARDED_BY(mutex_) = true;
};

class RecordingSink final : public TokenSink {
 public:
  // `on_tokens`: called behind each OnTokens, outside of the record's lock.
  explicit RecordingSink(std::shared_ptr<SinkRecord> record, std::function<void()> on_tokens = {})
      : record_(std::move(record)), on_tokens_(std::move(on_tokens)) {}
  ~RecordingSink() override {
    MutexLock lock(record_->mutex_);
    record_->destroyed_ = true;
  }

  void OnAdmitted(int64_t cached_tokens) override {
    MutexLock lock(record_->mutex_);
    if (record_->admitted_ || !record_->tokens_.empty() || record_->done_)
      record_->in_order_ = false;
    record_->admitted_ = cached_tokens;
  }
  void OnTokens(int64_t first_index, std::span<const SampledToken> tokens) override {
    {
      MutexLock lock(record_->mutex_);
      const auto have = static_cast<int64_t>(record_->tokens_.size());
      if (first_index != have || record_->done_) record_->in_order_ = false;
      for (const SampledToken& token : tokens) record_->tokens_.push_back(token.token);
      record_->changed_.NotifyAll();
    }
    if (on_tokens_) on_tokens_();
  }
  void OnDone(Status status, FinishReason reason, const Usage& usage) override {
    MutexLock lock(record_->mutex_);
    ++record_->done_count_;
    record_->done_ = SinkRecord::Done{std::move(status), reason, usage};
    record_->changed_.NotifyAll();
  }

 private:
  const std::shared_ptr<SinkRecord> record_;
  const std::function<void()> on_tokens_;
};

}  // namespace levin
