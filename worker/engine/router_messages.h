// What routers say to the engine and what it answers, free of gRPC. A router number stands for one
// incarnation of one router and is never used twice in an epoch (protocol.md 5, 7).
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "common/base/types.h"
#include "common/inference/generation.h"

namespace levin {

struct SubmitCommand {
  Generation generation;  // ordinal, request_id and attempt name it
};
struct CancelCommand {
  uint64_t ordinal = 0;
  uint32_t attempt = 0;  // another one than the Submit's: too late, ignored
  FinishReason why = FinishReason::kCancelled;
};
// A level, repeated by the router until a FreedAck covers it: every ordinal up to the watermark is
// over, except those listed.
struct FinishedSetCommand {
  uint64_t watermark = 0;
  std::vector<uint64_t> live;  // ascending
};
// Lease out, new incarnation or half-close: all of it is cancelled. Nothing may follow for its
// number.
struct RouterGone {};

struct RouterCommand {
  uint32_t router = 0;
  std::variant<SubmitCommand, CancelCommand, FinishedSetCommand, RouterGone> what;
};

struct AcceptedEvent {
  uint64_t ordinal = 0;
  uint32_t attempt = 0;
  bool admitted = false;        // else queued
  int64_t queue_place = 0;      // queued: how many wait, itself included
  int64_t reserved_blocks = 0;  // admitted
  int64_t cached_tokens = 0;
};
struct TokensEvent {
  uint64_t ordinal = 0;
  int64_t first_index = 0;  // of tokens[0] in the output: dense and rising
  std::vector<SampledToken> tokens;
};
struct FinishedEvent {
  uint64_t ordinal = 0;
  FinishReason reason = FinishReason::kNone;
  Usage usage;
  uint64_t ids_hash = 0;  // XXH3-64 over the output ids as little-endian u32
};
// Memory of all ordinals up to the watermark is back on every rank, except those listed.
struct FreedAckEvent {
  uint64_t watermark = 0;
  std::vector<uint64_t> unfreed;  // ascending
  uint64_t step = 0;              // the last one that all ranks had done
};
struct ErrorEvent {  // ends that generation
  uint64_t ordinal = 0;
  uint32_t attempt = 0;
  Status status;
  int64_t need_blocks = 0, free_blocks = 0, total_blocks = 0;
};

struct RouterEvent {
  uint32_t router = 0;
  std::variant<AcceptedEvent, TokensEvent, FinishedEvent, FreedAckEvent, ErrorEvent> what;
};

}  // namespace levin
