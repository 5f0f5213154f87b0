// The leader's loop: receive commands, let the scheduler decide, run the step on all ranks, compare
// digests, deliver. No token leaves before every rank agreed on its step (protocol.md 7, 11).
// Run on one thread; `progress()` from any.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mailbox.h"
#include "common/base/status.h"
#include "worker/engine/ledger.h"
#include "worker/engine/links.h"
#include "worker/engine/rank_executor.h"
#include "worker/engine/router_messages.h"
#include "worker/engine/step_progress.h"
#include "worker/schedule/scheduler.h"

namespace levin {

struct EngineOptions {
  int64_t bytes_per_block = 0, bytes_per_slot = 0;  // of the whole group; shown in Capacity
  Duration lease = std::chrono::seconds(10);        // how long an early Cancel is remembered
  size_t records_per_router_max = 65'536;           // generations known and not yet covered
};

class Engine final {
 public:
  // Everything but options and scheduler must outlive it. `ranks` is null when there is one rank.
  Engine(EngineOptions options, Scheduler scheduler, RankExecutor& executor, RankLink* ranks,
         Outbox& outbox, Mailbox<RouterCommand>& inbox, Clock& clock);

  // Until the inbox is closed and everything ended (OK), or the first fault: a rank lost, a digest
  // that differs (kDataLoss DIGEST_MISMATCH, names the rank), a failed step. After a fault nothing
  // more is delivered; the process says EpochEnd and leaves.
  Status Run();

  // One turn of Run, for tests that play all parts on one thread. False: nothing to do until a
  // command comes.
  Result<bool> Round();

  const Scheduler& scheduler() const { return scheduler_; }
  const StepProgress& progress() const { return progress_; }
  int fault_rank() const { return fault_rank_; }  // after Run failed; -1: none to blame

 private:
  struct Client {  // one router incarnation
    Ledger ledger;
    bool gone = false;
  };

  void Handle(RouterCommand command);
  void Submit(uint32_t router, Client& client, Generation generation);
  void CancelAll(uint32_t router, const std::vector<uint64_t>& ordinals, FinishReason why);
  Status Step(const BatchPlan& plan);
  Status CompareDigests(const StepResult& result);
  void Apply(std::vector<Emission> emissions);
  void Send(uint32_t router, const Client& client, Ledger::Answer answer);
  void Acknowledge();
  void Deliver();
  void ShowCapacity(bool draining);
  TimePoint DeadlineOf(const Generation& generation) const;

  const EngineOptions options_;
  Scheduler scheduler_;
  RankExecutor& executor_;
  RankLink* const ranks_;
  Outbox& outbox_;
  Mailbox<RouterCommand>& inbox_;
  Clock& clock_;
  std::map<uint32_t, Client> clients_;
  std::vector<RouterEvent> events_;  // not delivered yet
  std::optional<Capacity> shown_;
  StepProgress progress_;
  uint64_t last_step_ = 0;  // done by all ranks
  int fault_rank_ = -1;
};

}  // namespace levin
