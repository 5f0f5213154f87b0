// Child processes and signals as one stream of events, for commands that supervise others. One
// thread (the one that made it) owns it; it must exist before other threads do, because it blocks
// the signals that it turns into events. No child outlives this process (PR_SET_PDEATHSIG), nor
// does the destructor leave one behind.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"

namespace levin {

struct ChildEvent {
  enum Kind { kLine, kExit, kSignal } kind = kLine;
  int child = 0;          // as Start returned it
  std::string line;       // kLine: without its line feed
  bool is_error = false;  // kLine: from stderr
  int exit_code = 0;      // kExit: the code, or 128 + signal
  int signal = 0;         // kSignal: SIGTERM, SIGINT or SIGHUP sent to us
};

class Children final {
 public:
  static Result<Children> Create();
  Children(Children&& other) noexcept;
  Children& operator=(Children&&) = delete;
  ~Children();  // kills and reaps what still runs

  // argv[0] is the path of the program.
  Result<int> Start(const std::vector<std::string>& argv);
  void Signal(int child, int signal);
  bool IsRunning(int child) const { return children_.contains(child); }

  // The next event; nullopt when `until` has passed. A child's lines come before its exit.
  std::optional<ChildEvent> Next(TimePoint until);

 private:
  struct Stream {
    int fd = -1;
    std::string partial;
  };
  struct Child {
    pid_t pid = -1;
    Stream out, err;
  };

  explicit Children(int signal_fd) : signal_fd_(signal_fd) {}
  void ReadSignals();
  void ReadStream(int id, Stream& stream, bool is_error);
  void Reap();

  int signal_fd_ = -1;
  int next_id_ = 1;
  std::map<int, Child> children_;
  std::vector<ChildEvent> pending_;  // in order; consumed from the front
};

// The program `name` in the folder of the running one.
std::string SiblingProgram(const std::string& name);

}  // namespace levin
