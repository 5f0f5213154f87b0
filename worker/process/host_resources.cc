#include "worker/process/host_resources.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>

namespace levin {
namespace {

namespace fs = std::filesystem;

// "max" and files that are not there: nothing.
std::optional<int64_t> ReadNumber(const fs::path& path) {
  std::ifstream in(path);
  int64_t value = 0;
  if (in >> value) return value;
  return std::nullopt;
}

// Our folder below the unified hierarchy (version 2): the line "0::/path".
fs::path CgroupFolder(const fs::path& root) {
  std::ifstream in(root / "proc/self/cgroup");
  const fs::path base = root / "sys/fs/cgroup";
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("0::", 0) == 0) return base / fs::path(line.substr(3)).relative_path();
  }
  return base;
}

// Limits of a parent bind its children: the smallest on the way up counts.
template <typename Read>
void ForEachLevel(const fs::path& root, Read read) {
  const fs::path base = root / "sys/fs/cgroup";
  for (fs::path folder = CgroupFolder(root);; folder = folder.parent_path()) {
    read(folder);
    if (folder == base || !folder.has_parent_path() || folder == folder.parent_path()) return;
  }
}

int64_t MemAvailable(const fs::path& root) {
  std::ifstream in(root / "proc/meminfo");
  std::string name;
  int64_t kib = 0;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    if (words >> name >> kib && name == "MemAvailable:") return kib * 1024;
  }
  return 0;
}

}  // namespace

double CgroupCpuQuota(const fs::path& root) {
  double quota = 0;
  const auto take = [&quota](double cores) {
    if (cores > 0 && (quota == 0 || cores < quota)) quota = cores;
  };
  ForEachLevel(root, [&take](const fs::path& folder) {
    std::ifstream in(folder / "cpu.max");
    double limit = 0, period = 0;
    if (in >> limit >> period && period > 0) take(limit / period);
  });
  const std::optional<int64_t> limit = ReadNumber(root / "sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  const std::optional<int64_t> period = ReadNumber(root / "sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (limit && period && *limit > 0 && *period > 0)
    take(static_cast<double>(*limit) / static_cast<double>(*period));
  return quota;
}

int64_t AvailableBytes(const fs::path& root) {
  int64_t available = MemAvailable(root);
  const auto take = [&available](std::optional<int64_t> limit, std::optional<int64_t> used) {
    if (!limit || !used || *limit >= std::numeric_limits<int64_t>::max() / 2) return;
    const int64_t rest = std::max<int64_t>(*limit - *used, 0);
    available = available == 0 ? rest : std::min(available, rest);
  };
  ForEachLevel(root, [&take](const fs::path& folder) {
    take(ReadNumber(folder / "memory.max"), ReadNumber(folder / "memory.current"));
  });
  const fs::path old = root / "sys/fs/cgroup/memory";
  take(ReadNumber(old / "memory.limit_in_bytes"), ReadNumber(old / "memory.usage_in_bytes"));
  return available;
}

int64_t AvailableBytes() { return AvailableBytes("/"); }

int UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  const double quota = CgroupCpuQuota("/");
  if (quota > 0) cores = std::min(cores, static_cast<int>(std::ceil(quota)));
  return std::max(cores, 1);
}

int ThreadsPerRank(int group_threads, int ranks) { return std::max(1, group_threads / ranks); }

}  // namespace levin
