// What this process may use of its host, limits of its cgroup included.
#pragma once

#include <cstdint>
#include <filesystem>

namespace levin {

// Cores by affinity, and by the cgroup's CPU quota rounded up; at least 1.
int UsableCores();

// Memory that can be taken now without swapping or hitting the cgroup's limit; 0: unknown.
int64_t AvailableBytes();

// The same of a given root, for tests: root/proc/meminfo, root/proc/self/cgroup,
// root/sys/fs/cgroup.
double CgroupCpuQuota(const std::filesystem::path& root);  // in cores; 0: none
int64_t AvailableBytes(const std::filesystem::path& root);

// A rank's share of the group's compute threads; at least 1.
int ThreadsPerRank(int group_threads, int ranks);

}  // namespace levin
