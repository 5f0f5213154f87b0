#include "cli/children.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "common/base/check.h"

namespace levin {
namespace {

constexpr size_t kLineBytesMax =
    64 * 1024;  // a longer line is cut: nobody's log may eat our memory

sigset_t HandledSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  return set;
}

// Between fork and exec: async-signal-safe calls only.
[[noreturn]] void Become(char* const* argv, int out, int err, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // the parent died before the line above
  setpgid(0, 0);                      // Ctrl-C is the supervisor's to hand on
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int input = open("/dev/null", O_RDONLY);
  dup2(input, 0);
  dup2(out, 1);
  dup2(err, 2);
  execv(argv[0], argv);
  _exit(127);
}

}  // namespace

Result<Children> Children::Create() {
  const sigset_t set = HandledSignals();
  if (sigprocmask(SIG_BLOCK, &set, nullptr) != 0) {
    return Error(Internal(std::string("sigprocmask: ") + std::strerror(errno)));
  }
  const int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) return Error(Internal(std::string("signalfd: ") + std::strerror(errno)));
  return Children(fd);
}

Children::Children(Children&& other) noexcept
    : signal_fd_(std::exchange(other.signal_fd_, -1)),
      next_id_(other.next_id_),
      children_(std::move(other.children_)),
      pending_(std::move(other.pending_)) {
  other.children_.clear();
}

Children::~Children() {
  for (auto& [id, child] : children_) {
    kill(child.pid, SIGKILL);
    waitpid(child.pid, nullptr, 0);
    for (int fd : {child.out.fd, child.err.fd}) {
      if (fd >= 0) close(fd);
    }
  }
  if (signal_fd_ >= 0) close(signal_fd_);
}

Result<int> Children::Start(const std::vector<std::string>& argv) {
  CHECK(!argv.empty());
  if (access(argv[0].c_str(), X_OK) != 0) {
    return Error(NotFound("cannot run '" + argv[0] + "': " + std::strerror(errno)));
  }
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0)
    return Error(Internal(std::string("pipe: ") + std::strerror(errno)));
  if (pipe2(err, O_CLOEXEC) != 0) {
    close(out[0]), close(out[1]);
    return Error(Internal(std::string("pipe: ") + std::strerror(errno)));
  }
  std::vector<char*> raw;
  for (const std::string& argument : argv) raw.push_back(const_cast<char*>(argument.c_str()));
  raw.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) Become(raw.data(), out[1], err[1], parent);
  close(out[1]), close(err[1]);
  if (pid < 0) {
    close(out[0]), close(err[0]);
    return Error(Internal(std::string("fork: ") + std::strerror(errno)));
  }
  for (int fd : {out[0], err[0]}) fcntl(fd, F_SETFL, O_NONBLOCK);
  const int id = next_id_++;
  Child child;
  child.pid = pid;
  child.out.fd = out[0];
  child.err.fd = err[0];
  children_.emplace(id, std::move(child));
  return id;
}

void Children::Signal(int child, int signal) {
  auto it = children_.find(child);
  if (it != children_.end()) kill(it->second.pid, signal);
}

std::optional<ChildEvent> Children::Next(TimePoint until) {
  while (pending_.empty()) {
    std::vector<pollfd> fds = {{signal_fd_, POLLIN, 0}};
    for (auto& [id, child] : children_) {
      if (child.out.fd >= 0) fds.push_back({child.out.fd, POLLIN, 0});
      if (child.err.fd >= 0) fds.push_back({child.err.fd, POLLIN, 0});
    }
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    const int timeout_ms = static_cast<int>(std::clamp<int64_t>(left.count(), 0, 3'600'000));
    const int ready = poll(fds.data(), fds.size(), timeout_ms);
    if (ready == 0) return std::nullopt;
    if (ready < 0 && errno != EINTR) CHECK(false, "poll", std::strerror(errno));
    for (auto& [id, child] : children_) {
      ReadStream(id, child.out, false);
      ReadStream(id, child.err, true);
    }
    ReadSignals();
  }
  ChildEvent event = std::move(pending_.front());
  pending_.erase(pending_.begin());
  return event;
}

void Children::ReadSignals() {
  signalfd_siginfo info;
  while (read(signal_fd_, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD) {
      Reap();
      continue;
    }
    ChildEvent event;
    event.kind = ChildEvent::kSignal;
    event.signal = static_cast<int>(info.ssi_signo);
    pending_.push_back(std::move(event));
  }
}

void Children::ReadStream(int id, Stream& stream, bool is_error) {
  char bytes[16 * 1024];
  auto emit = [&](std::string line) {
    ChildEvent event;
    event.child = id;
    event.line = std::move(line);
    event.is_error = is_error;
    pending_.push_back(std::move(event));
  };
  while (stream.fd >= 0) {
    const ssize_t count = read(stream.fd, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;  // nothing more for now
    if (count == 0) {
      if (!stream.partial.empty()) emit(std::exchange(stream.partial, {}));
      close(std::exchange(stream.fd, -1));
      return;
    }
    stream.partial.append(bytes, static_cast<size_t>(count));
    size_t end;
    while ((end = stream.partial.find('\n')) != std::string::npos) {
      emit(stream.partial.substr(0, end));
      stream.partial.erase(0, end + 1);
    }
    if (stream.partial.size() > kLineBytesMax) emit(std::exchange(stream.partial, {}));
  }
}

void Children::Reap() {
  for (auto it = children_.begin(); it != children_.end();) {
    int status = 0;
    if (waitpid(it->second.pid, &status, WNOHANG) != it->second.pid) {
      ++it;
      continue;
    }
    ReadStream(it->first, it->second.out, false);
    ReadStream(it->first, it->second.err, true);
    for (int fd : {it->second.out.fd, it->second.err.fd}) {
      if (fd >= 0) close(fd);  // a grandchild may still hold the other end
    }
    ChildEvent event;
    event.kind = ChildEvent::kExit;
    event.child = it->first;
    event.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    pending_.push_back(std::move(event));
    it = children_.erase(it);
  }
}

std::string SiblingProgram(const std::string& name) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / name).string();
}

}  // namespace levin
