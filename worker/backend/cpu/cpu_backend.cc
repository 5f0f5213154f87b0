#include "worker/backend/cpu/cpu_backend.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include "common/base/check.h"
#include "worker/backend/cpu/cpu_kernels.h"
#include "worker/backend/cpu/packed_matrix.h"

namespace levin {
namespace {

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const CpuOptions& options)
      : packs_(options.path != CpuPath::kPlain), kernels_(options) {}

  Buffer Allocate(int64_t bytes) override { return Buffer(bytes); }
  void Pack(WeightMatrix& matrix) override {
    if (packs_) PackInPlace(matrix);
  }
  Kernels& kernels() override { return kernels_; }

 private:
  const bool packs_;
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

CpuPath BestCpuPath() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return CpuPath::kAvx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return CpuPath::kAvx2;
#endif
  return CpuPath::kPlain;
}

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
