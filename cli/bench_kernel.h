// levin bench --kernel: the CPU kernels beside the machine's roof.
#pragma once

#include "common/config/options.h"

namespace levin {

int RunKernelBench(const BenchOptions& options);

}  // namespace levin
