// What the leader is asked, as both sides of the Session see it. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/types.h"
#include "common/inference/sampling_params.h"

namespace levin {

struct Generation {
  uint64_t ordinal = 0;    // rises by one with each new Submit of a router incarnation
  std::string request_id;  // 16 random bytes: with `attempt` the idempotency key
  uint32_t attempt = 1;
  std::vector<TokenId> prompt;
  SamplingParams sampling;
  int32_t max_new_tokens = 0;    // 0: prefill only, ends with kLength, nothing drawn
  int64_t deadline_unix_ms = 0;  // 0: none
};

struct TopLogprob {
  TokenId token = 0;
  float logprob = 0;
};

// One drawn token on its way out.
struct SampledToken {
  TokenId token = 0;
  float logprob = 0;                 // of the raw logits; only where asked
  int32_t rank = 0;                  // 1 = most likely; 0 where not asked
  std::vector<TopLogprob> top = {};  // the k best, best first
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t output_tokens = 0;
  int64_t queue_us = 0;
  int64_t prefill_us = 0;
  int64_t decode_us = 0;
};

// What the leader says about its memory and queue; the router keeps the latest.
struct Capacity {
  int64_t total_blocks = 0, free_blocks = 0, reserved_blocks = 0;
  int64_t total_slots = 0, free_slots = 0;
  int64_t bytes_per_block = 0, bytes_per_slot = 0;  // of the whole group
  int64_t running = 0, waiting = 0;
  int64_t prefill_backlog_tokens = 0;
  int64_t submit_window = 0;  // waiting generations that this router may still add
  int64_t step = 0;
  bool draining = false;
  bool suspect = false;  // a rank has been silent for 3 s: no new work
  bool operator==(const Capacity&) const = default;
};

}  // namespace levin
