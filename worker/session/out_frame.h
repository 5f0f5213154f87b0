// What the leader says on a Session, free of gRPC: the engine's events, tokens gathered into one
// frame per write, and the leader's own notices (protocol.md 5).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/inference/generation.h"
#include "worker/engine/router_messages.h"

namespace levin {

// At most one run per generation, in order of their first token.
struct TokensFrame {
  std::vector<TokensEvent> runs;
};
struct HeartbeatFrame {
  int64_t unix_ms = 0;
  std::vector<uint64_t> live;  // ordinals of this router that have not ended, ascending
};
// Nothing of this epoch follows.
struct EpochEndFrame {
  std::string reason;  // rank_lost, hang, collective, digest, device, drain, other
  int32_t rank = -1;   // to blame; -1: none
  uint64_t last_good_step = 0;
  std::string message;
};

using OutFrame = std::variant<AcceptedEvent, TokensFrame, FinishedEvent, ErrorEvent, FreedAckEvent,
                              Capacity, HeartbeatFrame, EpochEndFrame>;

}  // namespace levin
