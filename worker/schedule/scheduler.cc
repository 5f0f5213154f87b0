#include "worker/schedule/scheduler.h"

#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/config/cache_cost.h"
#include "worker/cache/hybrid_cache.h"
#include "worker/schedule/admission.h"
#include "worker/schedule/generation_check.h"
#include "worker/schedule/row_layout.h"
#include "worker/schedule/sequence.h"

namespace levin {
namespace {

constexpr int64_t kQueueFullRetryMs = 1000;

int64_t Microseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

// Little-endian machines only, as everything that runs CUDA and AVX is.
uint64_t IdsHash(const std::vector<TokenId>& ids) {
  return XXH3_64bits(ids.data(), ids.size() * sizeof(TokenId));
}

Usage UsageOf(const Sequence& sequence, TimePoint now) {
  Usage usage;
  usage.prompt_tokens = sequence.prompt_tokens();
  usage.output_tokens = sequence.output_tokens();
  usage.queue_us = Microseconds(sequence.admitted - sequence.added);
  const TimePoint first = sequence.output.empty() ? now : sequence.first_token;
  usage.prefill_us = Microseconds(first - sequence.admitted);
  usage.decode_us = Microseconds(now - first);
  return usage;
}

bool Contains(const std::vector<TokenId>& ids, TokenId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

std::vector<TokenId> Distinct(std::vector<TokenId> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

template <typename T>
Range Append(std::span<const T> more, std::vector<T>& all) {
  const Range range{static_cast<int32_t>(all.size()), static_cast<int32_t>(more.size())};
  all.insert(all.end(), more.begin(), more.end());
  return range;
}

}  // namespace

int32_t SchedulerOptions::rows_max() const {
  return static_cast<int32_t>(std::min<int64_t>(max_num_seqs, slots));
}

int32_t SchedulerOptions::step_tokens_max() const {
  return std::max(tokens_per_step_max, rows_max() + std::max(block_tokens, chunk_tokens));
}

class Scheduler::Impl {
 public:
  explicit Impl(SchedulerOptions options)
      : options_(options),
        cache_(options.slots, options.blocks),
        waiting_(options.admission_skips) {
    CHECK(options.max_num_seqs > 0 && options.slots > 0 && options.blocks > 0);
    CHECK(options.block_tokens > 0 && options.max_model_len > 0 && options.vocab_size > 0);
    CHECK(!options.stepwise_prompt || options.chunk_tokens == 1, options.chunk_tokens);
  }

  Status Add(RequestKey key, Generation generation, TimePoint now, TimePoint deadline) {
    CHECK(!Known(key), key.router, key.ordinal);
    RETURN_IF_ERROR(CheckGeneration(generation, options_));
    if (waiting_.size() >= static_cast<size_t>(options_.waiting_max))
      return Status(Code::kResourceExhausted, "QUEUE_FULL",
                    std::to_string(waiting_.size()) + " generations wait, expected fewer than " +
                        std::to_string(options_.waiting_max))
          .WithRetryAfterMs(kQueueFullRetryMs);
    const int64_t blocks = BlocksOf(generation);
    waiting_.Push({.key = key,
                   .generation = std::move(generation),
                   .added = now,
                   .deadline = deadline,
                   .blocks = blocks});
    return Status::Ok();
  }

  void Cancel(RequestKey key, FinishReason why, TimePoint now) {
    if (std::optional<WaitingGeneration> waiting = waiting_.Remove(key))
      return EndWaiting(*waiting, why, now);
    for (Sequence& sequence : running_)
      if (sequence.key == key && !sequence.over) return End(sequence, why, now);
  }

  std::optional<BatchPlan> Next(TimePoint now) {
    CHECK(!in_flight_, step_);
    EndExpired(now);
    BatchPlan plan;
    Release(plan);
    Admit(plan, now);
    LayOut(plan);
    if (plan.finished.empty() && plan.started.empty() && plan.rows.empty()) return std::nullopt;
    plan.epoch = options_.epoch;
    plan.step = ++step_;
    in_flight_ = true;
    return plan;
  }

  void Complete(const StepResult& result, TimePoint now) {
    CHECK(in_flight_ && result.step == step_, result.step, step_);
    in_flight_ = false;
    size_t next_sample = 0;
    for (const LaidRow& row : rows_) {
      Sequence& sequence = running_[row.sequence];
      sequence.computed += row.tokens;
      if (Draws(sequence)) {
        CHECK(next_sample < result.samples.size() &&
                  result.samples[next_sample].sequence == sequence.id,
              sequence.id);
        TakeSample(sequence, result.samples[next_sample++], now);
      } else if (sequence.prompt_done() && !sequence.over) {
        End(sequence, FinishReason::kLength, now);  // asked for no token
      }
    }
    CHECK_EQ(next_sample, result.samples.size());
    rows_.clear();
    for (RequestKey key : releasing_) Emit(key, Freed{step_});
    releasing_.clear();
  }

  std::vector<Emission> TakeEmissions() { return std::exchange(emissions_, {}); }

  int64_t BlocksOf(const Generation& generation) const {
    return BlocksFor({.block_tokens = options_.block_tokens},
                     static_cast<int64_t>(generation.prompt.size()),
                     std::max(generation.max_new_tokens, 0));
  }

  Capacity capacity() const {
    Capacity capacity;
    capacity.total_blocks = cache_.blocks().size();
    capacity.free_blocks = cache_.blocks().free();
    capacity.reserved_blocks = capacity.total_blocks - capacity.free_blocks;
    capacity.total_slots = cache_.slots().size();
    capacity.free_slots = cache_.slots().free();
    capacity.running = std::count_if(running_.begin(), running_.end(),
                                     [](const Sequence& sequence) { return !sequence.over; });
    capacity.waiting = static_cast<int64_t>(waiting_.size());
    capacity.prefill_backlog_tokens = waiting_.prompt_tokens();
    for (const Sequence& sequence : running_)
      if (!sequence.over && !sequence.prompt_done())
        capacity.prefill_backlog_tokens += sequence.prompt_tokens() - sequence.computed;
    capacity.submit_window = options_.waiting_max - capacity.waiting;
    capacity.step = static_cast<int64_t>(step_);
    return capacity;
  }

  bool idle() const { return waiting_.empty() && running_.empty() && !in_flight_; }
  const SchedulerOptions& options() const { return options_; }

  int64_t LeakedIds() const {
    int64_t slots = cache_.slots().free(), blocks = cache_.blocks().free();
    for (const Sequence& sequence : running_) {
      slots += 1;
      blocks += static_cast<int64_t>(sequence.cache.blocks().size());
    }
    return cache_.slots().size() - slots + cache_.blocks().size() - blocks;
  }

 private:
  template <typename What>
  void Emit(RequestKey key, What what) {
    Emission& emission = emissions_.emplace_back();
    emission.key = key;
    emission.what = std::move(what);
  }

  bool Known(RequestKey key) const {
    return waiting_.Contains(key) ||
           std::any_of(running_.begin(), running_.end(),
                       [&](const Sequence& sequence) { return sequence.key == key; });
  }

  // A waiting one held nothing: it is over and freed at once.
  void EndWaiting(const WaitingGeneration& waiting, FinishReason why, TimePoint now) {
    Ended ended{.reason = why, .ids_hash = IdsHash({})};
    ended.usage.prompt_tokens = static_cast<int64_t>(waiting.generation.prompt.size());
    ended.usage.queue_us = Microseconds(now - waiting.added);
    Emit(waiting.key, ended);
    Emit(waiting.key, Freed{step_});
  }

  void End(Sequence& sequence, FinishReason why, TimePoint now) {
    sequence.over = true;
    Emit(sequence.key, Ended{why, UsageOf(sequence, now), IdsHash(sequence.output)});
  }

  void EndExpired(TimePoint now) {
    for (const WaitingGeneration& waiting : waiting_.RemoveExpired(now))
      EndWaiting(waiting, FinishReason::kDeadline, now);
    for (Sequence& sequence : running_)
      if (!sequence.over && sequence.deadline <= now) End(sequence, FinishReason::kDeadline, now);
  }

  // Leases of what is over fall here, before anybody is admitted: every rank applies `finished`
  // before `started`, so the memory may change owners within this very plan.
  void Release(BatchPlan& plan) {
    for (const Sequence& sequence : running_) {
      if (!sequence.over) continue;
      plan.finished.push_back(sequence.id);
      releasing_.push_back(sequence.key);
    }
    std::erase_if(running_, [](const Sequence& sequence) { return sequence.over; });
  }

  void Admit(BatchPlan& plan, TimePoint now) {
    const auto full = [&] { return running_.size() >= static_cast<size_t>(options_.rows_max()); };
    waiting_.Admit(full, [&](WaitingGeneration& waiting) {
      std::optional<SequenceCache> cache = cache_.Acquire(waiting.blocks);
      if (!cache) return false;
      Start(std::move(waiting), *std::move(cache), now, plan);
      return true;
    });
  }

  void Start(WaitingGeneration waiting, SequenceCache cache, TimePoint now, BatchPlan& plan) {
    Emit(waiting.key, Admitted{.reserved_blocks = waiting.blocks});
    NewSequence started;
    started.sequence = ++last_id_;
    started.state_slot = cache.slot();
    started.blocks = Append(cache.blocks(), plan.blocks);
    started.sampling = waiting.generation.sampling;
    if (started.sampling.repetition_penalty != 1.0f) {
      const std::vector<TokenId> counted = Distinct(waiting.generation.prompt);
      started.counted = Append<TokenId>(counted, plan.tokens);
    }
    plan.started.push_back(std::move(started));
    running_.push_back({.key = waiting.key,
                        .id = last_id_,
                        .generation = std::move(waiting.generation),
                        .cache = std::move(cache),
                        .added = waiting.added,
                        .deadline = waiting.deadline,
                        .admitted = now});
  }

  void LayOut(BatchPlan& plan) {
    rows_ = LayOutRows(options_, running_);
    for (const LaidRow& laid : rows_) {
      const Sequence& sequence = running_[laid.sequence];
      PlanRow row;
      row.sequence = sequence.id;
      row.position = sequence.computed;
      row.fresh = sequence.computed == 0;
      row.stepwise = !laid.prompt || options_.stepwise_prompt;
      if (laid.prompt) {
        const auto chunk =
            std::span(sequence.generation.prompt)
                .subspan(static_cast<size_t>(sequence.computed), static_cast<size_t>(laid.tokens));
        row.tokens = Append<TokenId>(chunk, plan.tokens);
      }
      const bool reaches_end = sequence.computed + laid.tokens >= sequence.prompt_tokens();
      row.draws = reaches_end && sequence.generation.max_new_tokens > 0 ? 1 : 0;
      plan.rows.push_back(row);
    }
  }

  // Did the row of this step, which is counted as computed, draw a token?
  static bool Draws(const Sequence& sequence) {
    return sequence.prompt_done() && sequence.generation.max_new_tokens > 0;
  }

  void TakeSample(Sequence& sequence, const RowSample& sample, TimePoint now) {
    if (sequence.over) return;  // cancelled while the step ran
    if (sample.numeric_fault) {
      sequence.over = true;
      return Emit(sequence.key,
                  Failed{Status(Code::kInternal, "NUMERIC_FAULT",
                                "no token can be drawn at output index " +
                                    std::to_string(sequence.output_tokens()) +
                                    ": logits that are not numbers, or none left by the rules")});
    }
    if (sequence.output.empty()) sequence.first_token = now;
    Emit(sequence.key, TokenDrawn{sequence.output_tokens(), sample.token});
    sequence.output.push_back(sample.token.token);
    if (Contains(sequence.generation.sampling.stop_ids, sample.token.token))
      End(sequence, FinishReason::kStop, now);
    else if (sequence.output_tokens() >= sequence.generation.max_new_tokens)
      End(sequence, FinishReason::kLength, now);
  }

  const SchedulerOptions options_;
  HybridCache cache_;  // before running_: leases give themselves back to it
  WaitingList waiting_;
  std::vector<Sequence> running_;  // in order of admission
  std::vector<LaidRow> rows_;      // of the step in flight; indices in running_
  std::vector<RequestKey> releasing_;
  std::vector<Emission> emissions_;
  SequenceId last_id_ = 0;
  uint64_t step_ = 0;
  bool in_flight_ = false;
};

Scheduler::Scheduler(SchedulerOptions options) : impl_(std::make_unique<Impl>(options)) {}
Scheduler::~Scheduler() = default;
Scheduler::Scheduler(Scheduler&&) noexcept = default;

Status Scheduler::Add(RequestKey key, Generation generation, TimePoint now, TimePoint deadline) {
  return impl_->Add(key, std::move(generation), now, deadline);
}
void Scheduler::Cancel(RequestKey key, FinishReason why, TimePoint now) {
  impl_->Cancel(key, why, now);
}
std::optional<BatchPlan> Scheduler::Next(TimePoint now) { return impl_->Next(now); }
void Scheduler::Complete(const StepResult& result, TimePoint now) { impl_->Complete(result, now); }
std::vector<Emission> Scheduler::TakeEmissions() { return impl_->TakeEmissions(); }
int64_t Scheduler::BlocksOf(const Generation& generation) const {
  return impl_->BlocksOf(generation);
}
Capacity Scheduler::capacity() const { return impl_->capacity(); }
bool Scheduler::idle() const { return impl_->idle(); }
const SchedulerOptions& Scheduler::options() const { return impl_->options(); }
int64_t Scheduler::LeakedIds() const { return impl_->LeakedIds(); }

}  // namespace levin
