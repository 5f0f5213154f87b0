// The backend that runs everywhere, and the specification of the others.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "worker/backend/backend.h"

namespace levin {

// kPlain: portable C++, the twin that the fast paths are tested against, and what a machine without
// vector instructions runs. The others need what they are named after.
enum class CpuPath : uint8_t { kPlain, kAvx2, kAvx512 };
std::string_view Name(CpuPath path);

// The fastest that this machine can run.
CpuPath BestCpuPath();

struct CpuOptions {
  int threads = 1;  // engine thread included
  CpuPath path = CpuPath::kPlain;
  // No choice between instructions that round differently may hang on a measurement or on the
  // number of rows: the same input gives the same bits in every process on this processor.
  bool batch_invariant = false;
};

std::unique_ptr<Backend> MakeCpuBackend(const CpuOptions& options);

// What one of `ranks` ranks on this host should use: its share of the cores that the process may
// use (affinity and cgroup quota), at least 1.
int CpuThreadsPerRank(int ranks);

}  // namespace levin
