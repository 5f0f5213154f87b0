#include "router/stop_signals.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace levin {
namespace {

constexpr int kEndOfThread = SIGUSR1;

sigset_t Watched() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGTERM, SIGINT, kEndOfThread}) sigaddset(&set, signal);
  return set;
}

}  // namespace

void StopSignals::Block() {
  const sigset_t set = Watched();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

StopSignals::StopSignals(std::function<void(int signal)> on_signal)
    : thread_([on_signal = std::move(on_signal)] {
        const sigset_t set = Watched();
        for (int signal = 0; sigwait(&set, &signal) == 0;) {
          if (signal == kEndOfThread) return;
          on_signal(signal);
        }
      }) {}

StopSignals::~StopSignals() {
  pthread_kill(thread_.native_handle(), kEndOfThread);
  thread_.join();
}

}  // namespace levin
