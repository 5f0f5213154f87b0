// Who runs in the next step: continuous batching with chunked prefill under exact reservation
// (protocol.md 11-13). Pure: no clock, lock, I/O or thread; time enters as a value. One thread.
//
// Next and Complete are the whole transaction, one step at a time: Next decides a plan, the ranks
// run it, Complete applies what it brought. Rules:
// - decode rows first, then prompt chunks in order of admission, within tokens_per_step_max;
// - a chunk ends on a multiple of block_tokens or where the prompt ends;
// - what ended is released before anything is admitted in the same step; its id travels in
//   `finished` of that plan, and a plan without rows goes out if nothing else is to be said;
// - at admission one slot and ceil((prompt + max_new) / block_tokens) blocks are reserved and held
//   to the end: no preemption;
// - a request that fits may pass earlier ones that do not, each of those at most admission_skips
//   times; then memory is saved up for it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/inference/generation.h"
#include "worker/plan/batch_plan.h"
#include "worker/schedule/emission.h"

namespace levin {

struct SchedulerOptions {
  int32_t max_num_seqs = 256;
  int64_t slots = 0;
  int64_t blocks = 0;
  int32_t block_tokens = 64;
  int32_t tokens_per_step_max = 8192;
  int64_t max_model_len = 0;
  int32_t vocab_size = 0;
  int32_t chunk_tokens = 0;      // k > 0: prompt chunks of exactly k tokens (levin eval)
  bool stepwise_prompt = false;  // prompts too in the one-token form: chunk_tokens must be 1
  int32_t waiting_max = 1024;
  int32_t admission_skips = 32;
  uint64_t epoch = 0;

  // The bounds that hold in every step: no more rows than slots; beside a full set of decode rows
  // at least one chunk of block_tokens (or chunk_tokens) fits, so that prefill always progresses.
  int32_t rows_max() const;
  int32_t step_tokens_max() const;
};

class Scheduler final {
 public:
  static constexpr TimePoint kNoDeadline = TimePoint::max();

  explicit Scheduler(SchedulerOptions options);  // slots, blocks, max_model_len, vocab_size > 0
  ~Scheduler();
  Scheduler(Scheduler&&) noexcept;

  // The key must be new. kInvalidArgument INVALID_FIELD, CONTEXT_LENGTH_EXCEEDED (model),
  // CACHE_NEVER_FITS (this pool) with the numbers; kResourceExhausted QUEUE_FULL. After an error
  // nothing is emitted for the key.
  Status Add(RequestKey key, Generation generation, TimePoint now,
             TimePoint deadline = kNoDeadline);

  // Ends it with `why`; its memory is back with the next plan. Unknown and ended keys are fine.
  void Cancel(RequestKey key, FinishReason why, TimePoint now);

  // The next plan, or nothing when nothing can run and no notice is due. Not between a plan and its
  // Complete.
  std::optional<BatchPlan> Next(TimePoint now);

  // Applies the result of the plan given last.
  void Complete(const StepResult& result, TimePoint now);

  // What happened since the last call, in order. Call after Add, Cancel, Next and Complete alike:
  // a waiting request ends without any step.
  std::vector<Emission> TakeEmissions();

  // Blocks that a generation reserves.
  int64_t BlocksOf(const Generation& generation) const;

  Capacity capacity() const;  // bytes_* and draining are the engine's to fill in
  bool idle() const;          // nobody waits or runs, and no notice is due
  const SchedulerOptions& options() const;

  // Recomputed from owners, not counters: ids of the pools that are neither free nor held.
  int64_t LeakedIds() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace levin
