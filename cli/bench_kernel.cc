#include "cli/bench_kernel.h"

#include <cstdio>

#include "worker/bench/kernel_bench.h"
#include "worker/bench/lightning_context.h"

namespace levin {

int RunKernelBench(const BenchOptions& options) {
  const int threads =
      options.worker.cpu_threads > 0 ? options.worker.cpu_threads : CpuThreadsPerRank(1);
  if (options.which == "lightning-context") {
    constexpr int64_t kMillion = int64_t{1} << 20;
    const auto costs = MeasureLightningContext(threads, BestCpuPath(), kMillion, options.rounds);
    std::printf("%s\n%s\n", LightningContextTable(costs).c_str(),
                LightningContextJson(costs).c_str());
    return 0;
  }
  KernelBenchOptions kernels;
  kernels.threads = threads;
  kernels.rounds *= options.rounds;
  kernels.which = options.which;
  kernels.path = BestCpuPath();
  kernels.progress = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  const KernelBenchResult result = RunKernels(kernels);
  std::printf("%s\n%s\n", KernelTable(result).c_str(), KernelJson(result).c_str());
  return 0;
}

}  // namespace levin
