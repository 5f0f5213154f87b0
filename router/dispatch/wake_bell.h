// Rung by any thread to end another's wait; a ring before the wait is not lost. Any thread.
#pragma once

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace levin {

class WakeBell final {
 public:
  void Ring() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    rung_ = true;
    changed_.NotifyAll();
  }

  // Until the bell has been rung since the last Wait, or the time is up.
  void Wait(TimePoint until) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (!rung_ && changed_.WaitUntil(mutex_, until)) {
    }
    rung_ = false;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool rung_ GUARDED_BY(mutex_) = false;
};

}  // namespace levin
