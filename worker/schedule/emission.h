// What the scheduler tells the outside about one request. Per key, in order: Admitted at most once,
// TokenDrawn with dense rising indices, then exactly one of Ended or Failed, then exactly one
// Freed.
#pragma once

#include <compare>
#include <cstdint>
#include <variant>

#include "common/base/status.h"
#include "common/base/types.h"
#include "common/inference/generation.h"

namespace levin {

// Names a generation inside the leader. A router number stands for one incarnation of one router
// and is never given out twice in an epoch.
struct RequestKey {
  uint32_t router = 0;
  uint64_t ordinal = 0;
  auto operator<=>(const RequestKey&) const = default;
};

struct Admitted {  // memory is reserved; it runs from this step on
  int64_t reserved_blocks = 0;
  int64_t cached_tokens = 0;
};
struct TokenDrawn {
  int64_t index = 0;  // in the output
  SampledToken token;
};
struct Ended {
  FinishReason reason = FinishReason::kNone;
  Usage usage = {};
  uint64_t ids_hash = 0;  // XXH3-64 over the output ids as little-endian u32
};
struct Failed {
  Status status;
};
struct Freed {  // memory is back on every rank
  uint64_t step = 0;
};

struct Emission {
  RequestKey key;
  std::variant<Admitted, TokenDrawn, Ended, Failed, Freed> what;
};

}  // namespace levin
