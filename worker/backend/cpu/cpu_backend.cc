#include "worker/backend/cpu/cpu_backend.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include "common/base/check.h"
#include "worker/backend/cpu/cpu_kernels.h"

namespace levin {
namespace {

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const CpuOptions& options) : kernels_(options) {}

  Buffer Allocate(int64_t bytes) override { return Buffer(bytes); }
  void Pack(WeightMatrix&) override {}
  Kernels& kernels() override { return kernels_; }

 private:
  CpuKernels kernels_;
};

// cgroup v2: "max 100000" or "200000 100000" (quota and period, us). 0: no limit.
double CgroupCores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 0;
  return std::atof(quota.c_str()) / period;
}

}  // namespace

std::string_view Name(CpuPath path) {
  switch (path) {
    case CpuPath::kPlain:
      return "plain";
    case CpuPath::kAvx2:
      return "avx2";
    case CpuPath::kAvx512:
      return "avx512";
  }
  return "?";
}

CpuPath BestCpuPath() { return CpuPath::kPlain; }

std::unique_ptr<Backend> MakeCpuBackend(const CpuOptions& options) {
  return std::make_unique<CpuBackend>(options);
}

int CpuThreadsPerRank(int ranks) {
  CHECK_LT(0, ranks);
  cpu_set_t set;
  int cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  const double quota = CgroupCores();
  if (quota > 0) cores = std::min(cores, std::max(1, static_cast<int>(std::floor(quota))));
  return std::max(1, cores / ranks);
}

}  // namespace levin
