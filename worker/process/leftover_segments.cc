#include "worker/process/leftover_segments.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

namespace levin {
namespace {

constexpr char kPrefix[] = "levin-";

bool IsLeftover(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  if (name.rfind(kPrefix, 0) != 0) return false;
  pid_t pid = 0;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + sizeof kPrefix - 1, end, pid);
  if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != '-') return false;
  struct stat info;
  if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid())
    return false;
  return kill(pid, 0) != 0 && errno == ESRCH;
}

}  // namespace

std::string SegmentName(int64_t pid, uint64_t epoch) {
  return std::string("/") + kPrefix + std::to_string(pid) + "-" + std::to_string(epoch);
}

int RemoveLeftoverSegments(const std::filesystem::path& folder) {
  int removed = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (IsLeftover(entry.path()) && std::filesystem::remove(entry.path(), error)) ++removed;
  }
  return removed;
}

}  // namespace levin
