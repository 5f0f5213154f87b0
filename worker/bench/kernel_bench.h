// Times kernels, each in turns with the loop that bounds it: where the machine's speed changes from
// one second to the next, only the share of the same moments means something. The best round of
// each counts: what others do on the same cores only ever takes away.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "worker/backend/cpu/cpu_backend.h"
#include "worker/bench/kernel_case.h"

namespace levin {

struct KernelBenchOptions {
  int threads = 1;
  int rounds = 5;             // the best counts
  std::string which = "all";  // or one of KernelGroups()
  CpuPath path = CpuPath::kPlain;
  std::function<void(const std::string&)> progress;
};

// Beside the roof that is nearer: what the kernel needs of memory, or of arithmetic.
struct KernelResult {
  KernelCase what;  // without its run
  RoofKind limit = RoofKind::kRead;
  double rate = 0;  // bytes or operations per second
  double roof = 0;  // the same

  double share() const { return rate / roof; }
};

struct MachineRoof {
  std::string what;
  double rate = 0;
  bool arithmetic = false;
};

struct KernelBenchResult {
  KernelBenchOptions options;
  std::vector<MachineRoof> roofs;
  std::vector<KernelResult> kernels;
};

std::vector<std::string> KernelGroups();
KernelBenchResult RunKernels(const KernelBenchOptions& options);

std::string KernelTable(const KernelBenchResult& result);  // Markdown
std::string KernelJson(const KernelBenchResult& result);   // one object, one line

}  // namespace levin
