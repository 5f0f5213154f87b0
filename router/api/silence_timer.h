// Tells streams, at a steady interval, that time has passed, so that a silent one can show its
// reader that it lives. One thread of its own; any thread may call any method.
#pragma once

#include <deque>
#include <memory>
#include <thread>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace levin {

class SilenceTimer final {
 public:
  class Stream {
   public:
    virtual ~Stream() = default;
    // One more interval is over. False when there is nothing to wait for any more.
    virtual bool Tick() = 0;
  };

  // `interval` > 0.
  explicit SilenceTimer(Duration interval);
  ~SilenceTimer();  // joins

  // Dropped when the stream is gone or has said that it is over.
  void Watch(std::weak_ptr<Stream> stream);

 private:
  struct Entry {
    TimePoint due;
    std::weak_ptr<Stream> stream;
  };

  void Run();

  const Duration interval_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Entry> entries_ GUARDED_BY(mutex_);  // by `due`: the interval is the same for all
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace levin
