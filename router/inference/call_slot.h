// Where a reply's Call stands once it is submitted, so that an end found before that (a stop string
// in the first tokens, a client that left at once) is not lost.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "common/base/mutex.h"
#include "router/inference/generator.h"

namespace levin {

// Any thread.
class CallSlot final : public Reply {
 public:
  void Cancel(CancelReason reason) override {
    Call* call = nullptr;
    {
      MutexLock lock(mutex_);
      if (ended_) return;
      if (!reason_) reason_ = reason;
      call = call_.get();
    }
    if (call != nullptr) call->Cancel(reason);  // stays: it is set once
  }

  void Attach(std::unique_ptr<Call> call) {
    std::optional<CancelReason> reason;
    Call* attached = call.get();
    {
      MutexLock lock(mutex_);
      call_ = std::move(call);
      if (!ended_) reason = reason_;
    }
    if (reason) attached->Cancel(*reason);
  }

  // The engine said its last word.
  void End() {
    MutexLock lock(mutex_);
    ended_ = true;
  }

  // Why it was cancelled first.
  std::optional<CancelReason> reason() const {
    MutexLock lock(mutex_);
    return reason_;
  }

 private:
  mutable Mutex mutex_;
  std::unique_ptr<Call> call_ GUARDED_BY(mutex_);
  std::optional<CancelReason> reason_ GUARDED_BY(mutex_);
  bool ended_ GUARDED_BY(mutex_) = false;
};

}  // namespace levin
