#include "worker/engine/engine.h"

#include <chrono>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "worker/plan/plan_codec.h"

namespace levin {
namespace {

constexpr Duration kIdleWait = std::chrono::seconds(1);
// Nobody waits longer; it also keeps a stranger's number from overflowing the clock.
constexpr int64_t kDeadlineMsMax = int64_t{366} * 24 * 3600 * 1000;

template <typename... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <typename... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

}  // namespace

Engine::Engine(EngineOptions options, Scheduler scheduler, RankExecutor& executor, RankLink* ranks,
               Outbox& outbox, Mailbox<RouterCommand>& inbox, Clock& clock)
    : options_(options),
      scheduler_(std::move(scheduler)),
      executor_(executor),
      ranks_(ranks),
      outbox_(outbox),
      inbox_(inbox),
      clock_(clock) {}

Status Engine::Run() {
  while (true) {
    const bool closed = inbox_.closed();  // asked before the round: nothing can come after that
    ShowCapacity(closed);
    ASSIGN_OR_RETURN_STATUS(const bool stepped, Round());
    if (stepped) continue;
    ShowCapacity(closed);
    if (closed) return Status::Ok();
    inbox_.WaitUntil(clock_.Now() + kIdleWait);
  }
}

Result<bool> Engine::Round() {
  for (RouterCommand& command : inbox_.Drain()) Handle(std::move(command));
  const std::optional<BatchPlan> plan = scheduler_.Next(clock_.Now());
  Apply(scheduler_.TakeEmissions());
  if (plan) {
    Deliver();  // who was admitted hears it before the step, which may be long
    RETURN_ERROR_IF(Step(*plan));
    Apply(scheduler_.TakeEmissions());
  } else {
    CHECK(scheduler_.idle());  // an empty pool fits everything that was let in
    progress_.has_work = false;
  }
  Acknowledge();
  Deliver();
  return plan.has_value();
}

void Engine::Handle(RouterCommand command) {
  const uint32_t router = command.router;
  Client& client =
      clients_.try_emplace(router, Client{Ledger(options_.records_per_router_max, options_.lease)})
          .first->second;
  if (client.gone) return;
  std::visit(
      Overloaded{
          [&](SubmitCommand& submit) { Submit(router, client, std::move(submit.generation)); },
          [&](CancelCommand& cancel) {
            if (client.ledger.Cancel(cancel, clock_.Now()))
              CancelAll(router, {cancel.ordinal}, cancel.why);
          },
          [&](FinishedSetCommand& set) {
            CancelAll(router, client.ledger.FinishedSet(std::move(set)), FinishReason::kCancelled);
          },
          [&](RouterGone&) {
            CancelAll(router, client.ledger.Live(), FinishReason::kCancelled);
            client.gone = true;
          }},
      command.what);
  Apply(scheduler_.TakeEmissions());
}

void Engine::Submit(uint32_t router, Client& client, Generation generation) {
  const TimePoint now = clock_.Now();
  Ledger::Opened opened = client.ledger.Open(generation, now);
  if (opened.answer) return Send(router, client, *std::move(opened.answer));

  const uint64_t ordinal = generation.ordinal;
  const uint32_t attempt = generation.attempt;
  const int64_t blocks = scheduler_.BlocksOf(generation);
  const TimePoint deadline = DeadlineOf(generation);
  Status status = scheduler_.Add({router, ordinal}, std::move(generation), now, deadline);
  if (!status.ok()) {
    const Capacity capacity = scheduler_.capacity();
    const ErrorEvent refusal{.ordinal = ordinal,
                             .attempt = attempt,
                             .status = std::move(status),
                             .need_blocks = blocks,
                             .free_blocks = capacity.free_blocks,
                             .total_blocks = capacity.total_blocks};
    client.ledger.SetAnswer(ordinal, refusal);
    client.ledger.SetFreed(ordinal);
    return Send(router, client, refusal);
  }
  const AcceptedEvent accepted{.ordinal = ordinal,
                               .attempt = attempt,
                               .admitted = false,
                               .queue_place = scheduler_.capacity().waiting};
  client.ledger.SetAnswer(ordinal, accepted);
  Send(router, client, accepted);
  if (opened.cancelled) CancelAll(router, {ordinal}, FinishReason::kCancelled);
}

void Engine::CancelAll(uint32_t router, const std::vector<uint64_t>& ordinals, FinishReason why) {
  for (uint64_t ordinal : ordinals) scheduler_.Cancel({router, ordinal}, why, clock_.Now());
}

Status Engine::Step(const BatchPlan& plan) {
  progress_.has_work = true;
  progress_.pairs = AttendedPairs(plan);  // before `begun`: who sees the step sees its size
  progress_.begun = plan.step;
  const std::string encoded = EncodePlan(plan);
  if (ranks_ != nullptr) RETURN_IF_ERROR(ranks_->SendPlan(encoded));
  ASSIGN_OR_RETURN_STATUS(const StepResult result, executor_.Execute(encoded));
  if (ranks_ != nullptr) RETURN_IF_ERROR(CompareDigests(result));
  last_step_ = plan.step;
  progress_.done = plan.step;
  scheduler_.Complete(result, clock_.Now());
  return Status::Ok();
}

Status Engine::CompareDigests(const StepResult& result) {
  ASSIGN_OR_RETURN_STATUS(const std::vector<uint64_t> digests, ranks_->AwaitDigests(result.step));
  for (size_t i = 0; i < digests.size(); ++i) {
    if (digests[i] == result.digest) continue;
    fault_rank_ = static_cast<int>(i) + 1;
    return Status(Code::kDataLoss, "DIGEST_MISMATCH",
                  "rank " + std::to_string(fault_rank_) + " reports digest " +
                      std::to_string(digests[i]) + " for step " + std::to_string(result.step) +
                      ", rank 0 has " + std::to_string(result.digest));
  }
  return Status::Ok();
}

void Engine::Apply(std::vector<Emission> emissions) {
  for (Emission& emission : emissions) {
    const uint32_t router = emission.key.router;
    const uint64_t ordinal = emission.key.ordinal;
    Client& client = clients_.at(router);
    Ledger& ledger = client.ledger;
    const auto answer = [&](Ledger::Answer what) {
      ledger.SetAnswer(ordinal, what);
      Send(router, client, std::move(what));
    };
    std::visit(
        Overloaded{[&](Admitted& admitted) {
                     answer(AcceptedEvent{.ordinal = ordinal,
                                          .attempt = ledger.AttemptOf(ordinal),
                                          .admitted = true,
                                          .queue_place = 0,
                                          .reserved_blocks = admitted.reserved_blocks,
                                          .cached_tokens = admitted.cached_tokens});
                   },
                   [&](TokenDrawn& drawn) {
                     if (client.gone) return;
                     events_.push_back(
                         {router, TokensEvent{ordinal, drawn.index, {std::move(drawn.token)}}});
                   },
                   [&](Ended& ended) {
                     answer(FinishedEvent{ordinal, ended.reason, ended.usage, ended.ids_hash});
                   },
                   [&](Failed& failed) {
                     answer(ErrorEvent{.ordinal = ordinal,
                                       .attempt = ledger.AttemptOf(ordinal),
                                       .status = std::move(failed.status)});
                   },
                   [&](Freed&) { ledger.SetFreed(ordinal); }},
        emission.what);
  }
}

void Engine::Send(uint32_t router, const Client& client, Ledger::Answer answer) {
  if (client.gone) return;
  std::visit([&](auto& event) { events_.push_back({router, std::move(event)}); }, answer);
}

void Engine::Acknowledge() {
  for (auto it = clients_.begin(); it != clients_.end();) {
    Client& client = it->second;
    std::optional<FreedAckEvent> ack = client.ledger.TakeFreedAck(last_step_);
    if (ack && !client.gone) events_.push_back({it->first, *std::move(ack)});
    it = client.gone && client.ledger.all_freed() ? clients_.erase(it) : std::next(it);
  }
}

void Engine::Deliver() {
  if (!events_.empty()) outbox_.Deliver(std::exchange(events_, {}));
}

void Engine::ShowCapacity(bool draining) {
  Capacity capacity = scheduler_.capacity();
  capacity.bytes_per_block = options_.bytes_per_block;
  capacity.bytes_per_slot = options_.bytes_per_slot;
  capacity.draining = draining;
  const int64_t step = std::exchange(capacity.step, shown_ ? shown_->step : -1);
  if (shown_ == capacity) return;  // the step counter alone is no news
  capacity.step = step;
  shown_ = capacity;
  outbox_.OnCapacity(capacity);
}

TimePoint Engine::DeadlineOf(const Generation& generation) const {
  if (generation.deadline_unix_ms == 0) return Scheduler::kNoDeadline;
  const int64_t now = clock_.UnixMs();
  if (generation.deadline_unix_ms <= now) return clock_.Now();
  const int64_t left = generation.deadline_unix_ms - now;
  if (left > kDeadlineMsMax) return Scheduler::kNoDeadline;
  return clock_.Now() + std::chrono::milliseconds(left);
}

}  // namespace levin
