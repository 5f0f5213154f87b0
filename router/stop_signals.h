// SIGTERM and SIGINT as messages. One object per process.
#pragma once

#include <functional>
#include <thread>

namespace levin {

class StopSignals final {
 public:
  // Call before the first other thread starts: the signals are blocked for this thread and all that
  // it makes.
  static void Block();

  // `on_signal`: from a thread of its own, for each signal that comes.
  explicit StopSignals(std::function<void(int signal)> on_signal);
  ~StopSignals();

 private:
  std::thread thread_;
};

}  // namespace levin
