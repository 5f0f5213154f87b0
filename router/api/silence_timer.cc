#include "router/api/silence_timer.h"

#include <utility>

namespace levin {

SilenceTimer::SilenceTimer(Duration interval)
    : interval_(interval), thread_([this] { Run(); }) {}

SilenceTimer::~SilenceTimer() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void SilenceTimer::Watch(std::weak_ptr<Stream> stream) {
  MutexLock lock(mutex_);
  entries_.push_back({std::chrono::steady_clock::now() + interval_, std::move(stream)});
  changed_.NotifyAll();
}

void SilenceTimer::Run() {
  for (;;) {
    std::shared_ptr<Stream> stream;
    {
      MutexLock lock(mutex_);
      while (!stopping_ && entries_.empty()) changed_.Wait(mutex_);
      if (stopping_) return;
      if (std::chrono::steady_clock::now() < entries_.front().due) {
        changed_.WaitUntil(mutex_, entries_.front().due);
        continue;
      }
      stream = entries_.front().stream.lock();
      entries_.pop_front();
    }
    if (stream != nullptr && stream->Tick()) Watch(stream);
  }
}

}  // namespace levin
