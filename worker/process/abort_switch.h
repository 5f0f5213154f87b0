// Lets a thread that sees a loss wake the engine out of a collective, whether or not there is one
// yet. Any thread may call any method.
#pragma once

#include <string>

#include "common/base/mutex.h"
#include "worker/comm/collective.h"

namespace levin {

class AbortSwitch final {
 public:
  // From now on Pull aborts this collective (at once if it was pulled before); null: none any more.
  void Connect(Collective* collective) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    collective_ = collective;
    if (collective_ != nullptr && pulled_) collective_->Abort(reason_);
  }
  void Pull(const std::string& reason) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (pulled_) return;
    pulled_ = true;
    reason_ = reason;
    if (collective_ != nullptr) collective_->Abort(reason_);
  }
  bool pulled() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return pulled_;
  }

 private:
  mutable Mutex mutex_;
  Collective* collective_ GUARDED_BY(mutex_) = nullptr;
  bool pulled_ GUARDED_BY(mutex_) = false;
  std::string reason_ GUARDED_BY(mutex_);
};

}  // namespace levin
