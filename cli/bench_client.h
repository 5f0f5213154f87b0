// Loads a worker group with equal sequences and notes when their tokens arrive: the measuring half
// of `levin bench`. Speaks to the group as a router does, without HTTP and text.
#pragma once

#include <cstdint>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "router/dispatch/engine_client.h"

namespace levin {

struct BenchLoad {
  int32_t sequences = 1;
  int64_t prompt_tokens = 1;  // of each sequence; random ids, the same in each run
  int32_t new_tokens = 0;     // drawn by each; nothing ends it early
};

struct BenchTimes {
  double total_s = 0;          // from the first submit to the last end
  double decode_s = 0;         // from the moment when every sequence has its first token
  int64_t decoded_tokens = 0;  // that came behind that moment
};

// Blocks until all have ended. Errors: the first that a sequence met.
Result<BenchTimes> RunBenchLoad(EngineClient& engine, const Clock& clock, const BenchLoad& load);

}  // namespace levin
