// The progress of one generation, before and after it holds memory. Plain data of the scheduler.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/clock.h"
#include "common/base/types.h"
#include "common/inference/generation.h"
#include "worker/cache/hybrid_cache.h"
#include "worker/schedule/emission.h"

namespace levin {

struct WaitingGeneration {
  RequestKey key;
  Generation generation;
  TimePoint added, deadline;
  int64_t blocks = 0;  // what it will reserve
  int32_t passed = 0;  // later ones that were admitted while it did not fit
};

struct Sequence {
  RequestKey key;
  SequenceId id = 0;
  Generation generation;
  SequenceCache cache;
  TimePoint added = {}, deadline = {}, admitted = {}, first_token = {};
  int64_t computed = 0;              // positions in the cache
  std::vector<TokenId> output = {};  // the one drawn last is not computed yet
  bool over = false;                 // told so; its memory returns with the next plan

  int64_t prompt_tokens() const { return static_cast<int64_t>(generation.prompt.size()); }
  int64_t output_tokens() const { return static_cast<int64_t>(output.size()); }
  bool prompt_done() const { return computed >= prompt_tokens(); }
};

}  // namespace levin
