// What a token costs in a lightning layer, at a thousand tokens of context and at a million: the
// state has one size, so the cost should have too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/backend/cpu/cpu_backend.h"

namespace levin {

struct LightningCost {
  int64_t context = 0;    // tokens before and in the window
  double prefill_ns = 0;  // per token, the best of the chunks before the context
  double decode_ns = 0;   // per token, the best of those decoded there
};

// One sequence of `tokens` tokens through the kernel, `rounds` times; a state carried from chunk to
// chunk, times taken where the context is 1024, 4096, ... up to the end.
std::vector<LightningCost> MeasureLightningContext(int threads, CpuPath path, int64_t tokens,
                                                   int rounds);

std::string LightningContextTable(const std::vector<LightningCost>& costs);  // Markdown
std::string LightningContextJson(const std::vector<LightningCost>& costs);   // one line

}  // namespace levin
