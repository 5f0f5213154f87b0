#include "worker/process/emergency.h"

#include <unistd.h>

#include <cstdio>

namespace levin {
namespace {

constexpr std::string_view kUnix = "unix:";

}  // namespace

void ReportExit(int rank, const Exit& exit) {
  if (exit.status.ok()) return;
  std::fprintf(stderr, "levin-worker: rank %d: error: %s\n", rank, exit.status.message().c_str());
}

void Emergency::Owns(const std::string& address) {
  MutexLock lock(mutex_);
  if (address.rfind(kUnix, 0) == 0) sockets_.push_back(address.substr(kUnix.size()));
}

void Emergency::RemoveSockets() {
  MutexLock lock(mutex_);
  for (const std::string& path : sockets_) unlink(path.c_str());
  sockets_.clear();
}

void Emergency::Leave(const Exit& exit) {
  ReportExit(rank_, exit);
  RemoveSockets();
  _exit(static_cast<int>(exit.code));
}

}  // namespace levin
