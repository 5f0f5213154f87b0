// std::mutex with Clang's thread-safety annotations (preset `tsa` checks them at compile time).
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define LEVIN_TSA(x) __attribute__((x))
#else
#define LEVIN_TSA(x)
#endif
#undef GUARDED_BY  // gRPC's headers bring Abseil's of the same name
#define GUARDED_BY(x) LEVIN_TSA(guarded_by(x))
#define REQUIRES(...) LEVIN_TSA(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) LEVIN_TSA(locks_excluded(__VA_ARGS__))

namespace levin {

class LEVIN_TSA(capability("mutex")) Mutex final {
 public:
  void Lock() LEVIN_TSA(acquire_capability()) { mutex_.lock(); }
  void Unlock() LEVIN_TSA(release_capability()) { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class LEVIN_TSA(scoped_lockable) MutexLock final {
 public:
  explicit MutexLock(Mutex& mutex) LEVIN_TSA(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() LEVIN_TSA(release_capability()) { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class CondVar final {
 public:
  void Wait(Mutex& mutex) REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // False when the time ran out.
  bool WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point until) REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool woken = condition_.wait_until(lock, until) == std::cv_status::no_timeout;
    lock.release();
    return woken;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace levin
