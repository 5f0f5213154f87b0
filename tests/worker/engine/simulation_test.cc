// The seeded simulation of the leader: random routers against tiny caches, all ranks in one thread,
// the engine driven round by round. Each episode has its own seed, which a failure prints;
// LEVIN_SIMULATION_SEED runs that one alone.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <list>
#include <memory>
#include <random>
#include <string>

#include "tests/support/fake_clock.h"
#include "tests/worker/engine/local_group.h"
#include "tests/worker/engine/plan_audit.h"
#include "tests/worker/engine/sim_router.h"
#include "worker/engine/engine.h"

namespace levin {
namespace {

using testing::LocalGroup;
using testing::PlanAudit;
using testing::SimRouter;

SchedulerOptions TinyOptions(std::mt19937_64& random) {
  const auto between = [&](uint64_t low, uint64_t high) {
    return static_cast<int32_t>(low + random() % (high - low + 1));
  };
  SchedulerOptions options;
  options.block_tokens = 8;
  options.slots = between(1, 6);
  options.max_num_seqs = between(1, 8);
  options.blocks = between(4, 40);
  options.tokens_per_step_max = between(1, 60);
  options.max_model_len = 100;
  options.vocab_size = 32;
  options.waiting_max = between(2, 12);
  options.admission_skips = between(0, 4);
  options.epoch = random();
  if (random() % 8 == 0) options.chunk_tokens = between(1, 9);
  return options;
}

class Episode final : public Outbox {
 public:
  explicit Episode(uint64_t seed)
      : random_(seed),
        options_(TinyOptions(random_)),
        group_(options_, 2 + static_cast<int>(seed % 2)),
        audit_(options_),
        engine_(EngineOptions{}, Scheduler(options_), group_.rank(0).executor, &audited_, *this,
                inbox_, clock_) {
    AddRouter();
    AddRouter();
  }

  void Run(int rounds) {
    for (int i = 0; i < rounds && !::testing::Test::HasFailure(); ++i) {
      for (auto& router : routers_) router->Act();
      if (random_() % 200 == 0) Replace();
      Round();
    }
  }

  // Everything ends, by itself or cancelled, and all memory is back.
  void Finish(bool cancel) {
    if (cancel)
      for (auto& router : routers_) router->CancelEverything();
    for (int i = 0; Round(); ++i) ASSERT_LT(i, 5000) << "never idle";
    for (auto& router : routers_) {
      router->ExpectAllOver();
      router->SendFinishedSet();
      whole_ += router->finished_whole();
    }
    Round();
    EXPECT_EQ(audit_.held(), 0u);
    for (size_t i = 0; i < group_.size(); ++i)
      EXPECT_EQ(group_.rank(i).executor.table().size(), 0u);
    const Capacity capacity = engine_.scheduler().capacity();
    EXPECT_EQ(capacity.free_slots, capacity.total_slots);
    EXPECT_EQ(capacity.free_blocks, capacity.total_blocks);
    EXPECT_EQ(capacity.running + capacity.waiting, 0);
  }

  uint64_t steps() const { return engine_.progress().done; }
  uint64_t finished_whole() const { return whole_; }

 private:
  void Deliver(std::vector<RouterEvent> events) override {
    for (const RouterEvent& event : events) {
      SimRouter* router = Find(event.router);
      ASSERT_NE(router, nullptr) << "an event for a router that is gone";
      router->Hear(event);
    }
  }
  void OnCapacity(const Capacity&) override {}

  bool Round() {
    clock_.Advance(std::chrono::milliseconds(1));
    for (auto& router : routers_) router->BeginRound(steps());
    const Result<bool> stepped = engine_.Round();
    EXPECT_TRUE(stepped) << stepped.error().message();
    if (!stepped) return false;
    if (leaving_ != nullptr) {
      routers_.remove_if([&](const auto& router) { return router.get() == leaving_; });
      leaving_ = nullptr;
      AddRouter();
    }
    EXPECT_EQ(engine_.scheduler().LeakedIds(), 0);
    return *stepped;
  }

  void Replace() {
    leaving_ = routers_.front().get();
    leaving_->Leave();
    whole_ += leaving_->finished_whole();
  }

  void AddRouter() {
    ++last_router_;
    routers_.push_back(std::make_unique<SimRouter>(last_router_, uint64_t{last_router_} << 32,
                                                   random_, options_, clock_, audit_, inbox_));
  }
  SimRouter* Find(uint32_t number) {
    for (auto& router : routers_)
      if (router->number() == number) return router.get();
    return nullptr;
  }

  // The audit must see a plan before anything that it brings is delivered.
  class AuditedGroup final : public RankLink {
   public:
    AuditedGroup(LocalGroup& group, PlanAudit& audit) : group_(group), audit_(audit) {}
    Status SendPlan(const std::string& encoded) override {
      RETURN_IF_ERROR(group_.SendPlan(encoded));
      audit_.Check(group_.plans.back());
      return Status::Ok();
    }
    Result<std::vector<uint64_t>> AwaitDigests(uint64_t step) override {
      return group_.AwaitDigests(step);
    }

   private:
    LocalGroup& group_;
    PlanAudit& audit_;
  };

  std::mt19937_64 random_;
  const SchedulerOptions options_;
  FakeClock clock_;
  Mailbox<RouterCommand> inbox_{4096};
  LocalGroup group_;
  PlanAudit audit_;
  AuditedGroup audited_{group_, audit_};
  Engine engine_;
  std::list<std::unique_ptr<SimRouter>> routers_;
  SimRouter* leaving_ = nullptr;
  uint32_t last_router_ = 0;
  uint64_t whole_ = 0;
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
constexpr uint64_t kStepsWanted = 20'000;
#else
constexpr uint64_t kStepsWanted = 200'000;
#endif
constexpr uint64_t kFirstSeed = 20261130;
constexpr int kRounds = 1000;

uint64_t RunEpisode(uint64_t seed, uint64_t& whole) {
  SCOPED_TRACE("LEVIN_SIMULATION_SEED=" + std::to_string(seed));
  Episode episode(seed);
  episode.Run(kRounds);
  if (::testing::Test::HasFailure()) return episode.steps();  // the rest would only add noise
  episode.Finish(seed % 3 == 0);
  whole += episode.finished_whole();
  return episode.steps();
}

TEST(SimulationTest, RandomRoutersOnTinyCachesGetWhatEachGenerationGivesAloneAndAllComesBack) {
  uint64_t steps = 0, whole = 0, seed = kFirstSeed;
  if (const char* one = std::getenv("LEVIN_SIMULATION_SEED")) {
    RunEpisode(std::stoull(one), whole);
    return;
  }
  for (; steps < kStepsWanted && !HasFailure(); ++seed) steps += RunEpisode(seed, whole);
  std::cout << "seeds " << kFirstSeed << " to " << seed - 1 << ", " << steps << " steps, " << whole
            << " generations ended by themselves\n";
  EXPECT_GT(whole, steps / 20);  // else the simulation does little but cancel
}

}  // namespace
}  // namespace levin
