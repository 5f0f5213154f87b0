// The way out for a thread that cannot wait for the others: says why, removes what would outlive
// the process, and ends it at once.
#pragma once

#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "worker/process/exit_code.h"

namespace levin {

// "levin-worker: rank 1: error: ..." on stderr; nothing for an OK status.
void ReportExit(int rank, const Exit& exit);

// Any thread may call any method.
class Emergency final {
 public:
  explicit Emergency(int rank) : rank_(rank) {}

  // A Unix socket to unlink (addresses of another kind are ignored).
  void Owns(const std::string& address) EXCLUDES(mutex_);
  // What the owned sockets leave behind; also at an orderly end.
  void RemoveSockets() EXCLUDES(mutex_);
  [[noreturn]] void Leave(const Exit& exit);

 private:
  const int rank_;
  Mutex mutex_;
  std::vector<std::string> sockets_ GUARDED_BY(mutex_);
};

}  // namespace levin
