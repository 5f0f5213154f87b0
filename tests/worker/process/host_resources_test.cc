#include "worker/process/host_resources.h"

#include <gtest/gtest.h>

#include "tests/worker/process/temporary_folder.h"

namespace levin {
namespace {

constexpr int64_t kMib = 1 << 20;

TEST(HostResources, ReadsWhatTheHostHasAvailable) {
  const TemporaryFolder root;
  root.Write("proc/meminfo", "MemTotal: 9999 kB\nMemAvailable:    2048 kB\n");
  EXPECT_EQ(AvailableBytes(root.path()), 2 * kMib);
  EXPECT_EQ(CgroupCpuQuota(root.path()), 0);
}

TEST(HostResources, TheTightestCgroupOnTheWayUpCounts) {
  const TemporaryFolder root;
  root.Write("proc/meminfo", "MemAvailable: 1048576 kB\n");
  root.Write("proc/self/cgroup", "0::/pod/box\n");
  root.Write("sys/fs/cgroup/pod/box/memory.max", "max\n");
  root.Write("sys/fs/cgroup/pod/box/memory.current", "5\n");
  root.Write("sys/fs/cgroup/pod/memory.max", std::to_string(100 * kMib));
  root.Write("sys/fs/cgroup/pod/memory.current", std::to_string(40 * kMib));
  root.Write("sys/fs/cgroup/pod/box/cpu.max", "max 100000\n");
  root.Write("sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
  EXPECT_EQ(AvailableBytes(root.path()), 60 * kMib);
  EXPECT_EQ(CgroupCpuQuota(root.path()), 1.5);
}

TEST(HostResources, KnowsTheOldCgroupsToo) {
  const TemporaryFolder root;
  root.Write("proc/meminfo", "MemAvailable: 1048576 kB\n");
  root.Write("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(64 * kMib));
  root.Write("sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(96 * kMib));
  root.Write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000");
  root.Write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(AvailableBytes(root.path()), 0);
  EXPECT_EQ(CgroupCpuQuota(root.path()), 2);
}

TEST(HostResources, AnUnlimitedOldCgroupIsNoLimit) {
  const TemporaryFolder root;
  root.Write("proc/meminfo", "MemAvailable: 1024 kB\n");
  root.Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  root.Write("sys/fs/cgroup/memory/memory.usage_in_bytes", "1");
  root.Write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  root.Write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(AvailableBytes(root.path()), kMib);
  EXPECT_EQ(CgroupCpuQuota(root.path()), 0);
}

TEST(HostResources, RanksShareTheThreadsAndEachHasOne) {
  EXPECT_EQ(ThreadsPerRank(8, 2), 4);
  EXPECT_EQ(ThreadsPerRank(2, 8), 1);
  EXPECT_GE(UsableCores(), 1);
}

}  // namespace
}  // namespace levin
