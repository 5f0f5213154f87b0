// A small language for scheduler tests: requests by number, steps in which the test plays the
// ranks.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "worker/schedule/scheduler.h"

namespace levin {

class SchedulerFixture : public ::testing::Test {
 protected:
  static SchedulerOptions Small() {
    SchedulerOptions options;
    options.max_num_seqs = 4;
    options.slots = 4;
    options.blocks = 16;
    options.tokens_per_step_max = 256;
    options.max_model_len = 2048;
    options.vocab_size = 1000;
    options.epoch = 9;
    return options;
  }

  void Start(const SchedulerOptions& options) {
    options_ = options;
    scheduler_.emplace(options);
  }

  static Generation Ask(int64_t prompt, int32_t max_new) {
    Generation generation;
    for (int64_t i = 0; i < prompt; ++i)
      generation.prompt.push_back(static_cast<TokenId>(i % 900 + 1));
    generation.max_new_tokens = max_new;
    generation.sampling.stop_ids = {kStopId};
    return generation;
  }

  Status Add(uint64_t ordinal, Generation generation, TimePoint deadline = Scheduler::kNoDeadline) {
    return scheduler_->Add({0, ordinal}, std::move(generation), now_, deadline);
  }
  void Cancel(uint64_t ordinal) {
    scheduler_->Cancel({0, ordinal}, FinishReason::kCancelled, now_);
    Note();
  }

  // One step; `draw` gives the token for a sequence, kDraw by default. The plan, if there was one.
  std::optional<BatchPlan> Step(const std::function<RowSample(SequenceId)>& draw = nullptr) {
    now_ += std::chrono::milliseconds(1);
    std::optional<BatchPlan> plan = scheduler_->Next(now_);
    Note();
    if (!plan) return plan;
    StepResult result;
    result.step = plan->step;
    for (const PlanRow& row : plan->rows) {
      if (row.draws == 0) continue;
      RowSample sample;
      if (draw)
        sample = draw(row.sequence);
      else
        sample.token.token = kDraw;
      sample.sequence = row.sequence;
      result.samples.push_back(sample);
    }
    scheduler_->Complete(result, now_);
    Note();
    EXPECT_EQ(scheduler_->LeakedIds(), 0);
    return plan;
  }
  void RunToTheEnd() {
    for (int i = 0; i < 100'000; ++i)
      if (!Step()) return;
    FAIL() << "never idle";
  }

  // "12: admitted, token, token, length, freed"
  std::string Story(uint64_t ordinal) const {
    std::string story;
    for (const Emission& emission : emissions_)
      if (emission.key.ordinal == ordinal)
        story += (story.empty() ? "" : ", ") + std::visit(Word{}, emission.what);
    return story;
  }
  template <typename T>
  std::vector<T> All(uint64_t ordinal) const {
    std::vector<T> all;
    for (const Emission& emission : emissions_)
      if (emission.key.ordinal == ordinal && std::holds_alternative<T>(emission.what))
        all.push_back(std::get<T>(emission.what));
    return all;
  }

  static constexpr TokenId kDraw = 7, kStopId = 2;
  SchedulerOptions options_;
  std::optional<Scheduler> scheduler_;
  std::vector<Emission> emissions_;
  TimePoint now_{};

 private:
  struct Word {
    std::string operator()(const Admitted&) const { return "admitted"; }
    std::string operator()(const TokenDrawn&) const { return "token"; }
    std::string operator()(const Ended& ended) const { return std::string(Name(ended.reason)); }
    std::string operator()(const Failed& failed) const { return failed.status.reason(); }
    std::string operator()(const Freed&) const { return "freed"; }
  };

  void Note() {
    for (Emission& emission : scheduler_->TakeEmissions())
      emissions_.push_back(std::move(emission));
  }
};

}  // namespace levin
