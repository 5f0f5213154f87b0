// A bounded queue between threads. Any thread may call any method.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/mutex.h"

namespace levin {

template <typename T>
class Mailbox final {
 public:
  explicit Mailbox(size_t capacity) : capacity_(capacity) {}

  // False when full or closed: the caller owns what to do about it. Never blocks.
  bool TryPush(T value) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (closed_ || queue_.size() >= capacity_) return false;
    queue_.push_back(std::move(value));
    filled_.NotifyOne();
    return true;
  }

  // Waits for a value until the time is up or the mailbox is closed and empty (then nullopt).
  std::optional<T> PopUntil(std::chrono::steady_clock::time_point until) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (queue_.empty() && !closed_) {
      if (!filled_.WaitUntil(mutex_, until)) break;
    }
    if (queue_.empty()) return std::nullopt;
    T value = std::move(queue_.front());
    queue_.pop_front();
    return value;
  }

  // Everything that is here now; never blocks.
  std::vector<T> Drain() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    std::vector<T> all(std::make_move_iterator(queue_.begin()),
                       std::make_move_iterator(queue_.end()));
    queue_.clear();
    return all;
  }

  // Blocks until something is here, the time is up, or the mailbox is closed.
  void WaitUntil(std::chrono::steady_clock::time_point until) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (queue_.empty() && !closed_) {
      if (!filled_.WaitUntil(mutex_, until)) return;
    }
  }

  void Close() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    closed_ = true;
    filled_.NotifyAll();
  }
  bool closed() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return closed_;
  }
  size_t size() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return queue_.size();
  }

 private:
  const size_t capacity_;
  mutable Mutex mutex_;
  CondVar filled_;
  std::deque<T> queue_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace levin
