// The thread beside the engine's: signals and one call a second, for heartbeats, leases and losses.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "common/base/status.h"

namespace levin {

class Watch final {
 public:
  // Blocks SIGTERM and SIGINT in this thread and all that it starts, ignores SIGPIPE. Call first in
  // main.
  static void BlockSignals();

  // Both run on the watch's thread. `on_signal` is told how often one has come.
  static Result<std::unique_ptr<Watch>> Start(std::function<void()> on_tick,
                                              std::function<void(int)> on_signal);
  ~Watch();  // stops and joins

 private:
  Watch(int signal_fd, int stop_fd, std::function<void()> on_tick,
        std::function<void(int)> on_signal);
  void Run();

  const int signal_fd_, stop_fd_;
  const std::function<void()> on_tick_;
  const std::function<void(int)> on_signal_;
  std::thread thread_;
};

}  // namespace levin
