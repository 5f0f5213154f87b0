#include "worker/process/watch.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "common/rpc/limits.h"

namespace levin {
namespace {

constexpr std::chrono::milliseconds kTick{kHeartbeatMs};

sigset_t EndSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

void Watch::BlockSignals() {
  const sigset_t set = EndSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

Result<std::unique_ptr<Watch>> Watch::Start(std::function<void()> on_tick,
                                            std::function<void(int)> on_signal) {
  const sigset_t set = EndSignals();
  const int signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  const int stop_fd = eventfd(0, EFD_CLOEXEC);
  if (signal_fd < 0 || stop_fd < 0) {
    const std::string why = std::strerror(errno);
    for (const int fd : {signal_fd, stop_fd}) {
      if (fd >= 0) close(fd);
    }
    return Error(Internal("signalfd or eventfd: " + why));
  }
  return std::unique_ptr<Watch>(
      new Watch(signal_fd, stop_fd, std::move(on_tick), std::move(on_signal)));
}

Watch::Watch(int signal_fd, int stop_fd, std::function<void()> on_tick,
             std::function<void(int)> on_signal)
    : signal_fd_(signal_fd),
      stop_fd_(stop_fd),
      on_tick_(std::move(on_tick)),
      on_signal_(std::move(on_signal)) {
  thread_ = std::thread([this] { Run(); });
}

Watch::~Watch() {
  const uint64_t one = 1;
  (void)!write(stop_fd_, &one, sizeof one);
  thread_.join();
  close(signal_fd_);
  close(stop_fd_);
}

void Watch::Run() {
  using Steady = std::chrono::steady_clock;
  int signals = 0;
  Steady::time_point next = Steady::now() + kTick;
  while (true) {
    pollfd fds[] = {{stop_fd_, POLLIN, 0}, {signal_fd_, POLLIN, 0}};
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(next - Steady::now());
    (void)poll(fds, 2, static_cast<int>(std::max<int64_t>(wait.count(), 0)));
    if (fds[0].revents != 0) return;
    signalfd_siginfo info;
    while (read(signal_fd_, &info, sizeof info) == sizeof info) on_signal_(++signals);
    if (Steady::now() < next) continue;
    on_tick_();
    next =
        std::max(next + kTick, Steady::now());  // after a stall: one tick, not all that were missed
  }
}

}  // namespace levin
