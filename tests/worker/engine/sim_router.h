// A router of the simulation: sends what a router may send, in every order it may arrive in, and
// checks each answer against what the generation gives alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mailbox.h"
#include "tests/support/scripted_model.h"
#include "tests/worker/engine/plan_audit.h"
#include "worker/engine/router_messages.h"

namespace levin::testing {

class SimRouter final {
 public:
  // All must outlive it. Generations get seeds first_seed, first_seed + 1, ...: unique in a run.
  SimRouter(uint32_t number, uint64_t first_seed, std::mt19937_64& random,
            const SchedulerOptions& options, const Clock& clock, const PlanAudit& audit,
            Mailbox<RouterCommand>& inbox)
      : number_(number),
        next_seed_(first_seed),
        random_(random),
        options_(options),
        clock_(clock),
        audit_(audit),
        inbox_(inbox),
        sampler_(options.vocab_size, {}) {}

  void Act();  // perhaps sends something
  void CancelEverything();
  void SendFinishedSet();
  void Leave();  // RouterGone: nothing may be heard after the next round
  void Hear(const RouterEvent& event);

  // Between rounds; `step`: the last one done. Memory of what was cancelled must be back in time.
  void BeginRound(uint64_t step);
  void ExpectAllOver() const;
  uint32_t number() const { return number_; }
  uint64_t next_seed() const { return next_seed_; }
  uint64_t finished_whole() const { return finished_whole_; }

 private:
  struct Request {
    Generation generation;
    std::vector<TokenId> tokens;
    std::optional<FinishedEvent> end;
    bool failed = false;
    bool live = true;  // listed in our FinishedSet
    bool may_be_cancelled = false;
    int resubmits = 0;
    std::optional<uint64_t> cancelled_at;  // step
  };

  void Send(decltype(RouterCommand::what) what);
  Generation Draw();
  void Submit();
  void Resubmit();
  void CancelOne();
  void CancelBeforeSubmit();
  void CheckEnd(Request& request, const FinishedEvent& end);
  void CheckError(Request& request, const ErrorEvent& error);
  void CheckFreed(const FreedAckEvent& ack) const;
  bool Held(const Request& request) const;
  Request* AnyRequest();
  uint64_t Below(uint64_t n) { return random_() % n; }

  const uint32_t number_;
  uint64_t next_seed_;
  uint64_t next_ordinal_ = 1;
  std::mt19937_64& random_;
  const SchedulerOptions& options_;
  const Clock& clock_;
  const PlanAudit& audit_;
  Mailbox<RouterCommand>& inbox_;
  Sampler sampler_;
  std::map<uint64_t, Request> requests_;
  uint64_t watermark_ = 0;
  std::vector<uint64_t> listed_;
  uint64_t step_ = 0;
  uint64_t finished_whole_ = 0;
};

}  // namespace levin::testing
