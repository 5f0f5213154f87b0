#include "worker/session/session_hub.h"

#include <algorithm>
#include <random>
#include <utility>

#include "common/rpc/limits.h"

namespace levin {
namespace {

constexpr int64_t kRemainingMsMax = int64_t{1}
                                    << 40;  // a sum with the clock stays far from overflow

// 128 bits from the system and the epoch: nobody guesses another router's token.
std::string MakeToken(uint64_t epoch) {
  std::random_device random;
  std::string token = std::to_string(epoch);
  for (int i = 0; i < 4; ++i) token += "-" + std::to_string(random());
  return token;
}

Status EpochOver() { return {Code::kUnavailable, "EPOCH_ENDED", "this group's epoch has ended"}; }

Status Draining() {
  return {Code::kUnavailable, "DRAINING", "the group is draining and takes no new work"};
}

}  // namespace

SessionHub::SessionHub(HubOptions options, Mailbox<RouterCommand>& inbox, const Clock& clock)
    : options_(options), inbox_(inbox), clock_(clock), last_tick_(clock.Now()) {}

void SessionHub::SetReady() {
  MutexLock lock(mutex_);
  ready_ = true;
}

Status SessionHub::CheckHello(const RouterHello& hello) {
  if (hello.protocol_major != kProtocolMajor) {
    return {Code::kFailedPrecondition, "PROTOCOL_VERSION",
            "the router speaks protocol " + std::to_string(hello.protocol_major) + ", the group " +
                std::to_string(kProtocolMajor)};
  }
  if (hello.router_id.empty()) return InvalidArgument("handshake: router_id is empty");
  if (epoch_over_) return EpochOver();
  if (hello.highest_epoch_seen > options_.epoch) {
    // Clocks may differ by little; a router that claims more than a day is itself wrong.
    if (hello.highest_epoch_seen - options_.epoch <= static_cast<uint64_t>(kEpochAheadMsMax)) {
      higher_epoch_ = std::max(higher_epoch_, hello.highest_epoch_seen);
    }
    return {Code::kFailedPrecondition, "EPOCH_MISMATCH",
            "the router has seen epoch " + std::to_string(hello.highest_epoch_seen) +
                ", this group is at " + std::to_string(options_.epoch)};
  }
  if (hello.tokenizer_hash != 0 && options_.tokenizer_hash != 0 &&
      hello.tokenizer_hash != options_.tokenizer_hash) {
    return {Code::kFailedPrecondition, "TOKENIZER_MISMATCH",
            "router and group have different tokenizer.json files: hash " +
                std::to_string(hello.tokenizer_hash) + " there, " +
                std::to_string(options_.tokenizer_hash) + " here"};
  }
  if (!ready_) return {Code::kUnavailable, "MODEL_LOADING", "the group is loading its model"};
  return Status::Ok();
}

Result<std::string> SessionHub::Handshake(const RouterHello& hello) {
  MutexLock lock(mutex_);
  RETURN_ERROR_IF(CheckHello(hello));
  uint32_t replaced = 0;
  for (auto& [router, lease] : leases_) {
    if (lease.router_id != hello.router_id) continue;
    if (lease.incarnation == hello.incarnation) {
      lease.heard = clock_.Now();
      return lease.token;
    }
    replaced = router;
  }
  if (replaced != 0) {
    EndLease(replaced, Status(Code::kFailedPrecondition, "SESSION_ENDED",
                              "a newer incarnation of this router came"));
  }
  if (leases_.size() >= options_.routers_max) {
    return Error(Status(Code::kResourceExhausted, "QUEUE_FULL",
                        std::to_string(leases_.size()) + " routers hold a lease, no more may"));
  }
  Lease& lease = leases_[next_router_++];
  lease.router_id = hello.router_id;
  lease.incarnation = hello.incarnation;
  lease.token = MakeToken(options_.epoch);
  lease.heard = clock_.Now();
  return lease.token;
}

Result<std::shared_ptr<Session>> SessionHub::Open(const std::string& token, SessionDoor& door) {
  MutexLock lock(mutex_);
  if (epoch_over_) return Error(EpochOver());
  const auto found = std::find_if(leases_.begin(), leases_.end(), [&token](const auto& entry) {
    return entry.second.token == token;
  });
  if (found == leases_.end()) {
    return Error(Status(Code::kFailedPrecondition, "SESSION_ENDED",
                        "no lease has this Session token: Handshake again"));
  }
  Lease& lease = found->second;
  if (lease.session != nullptr) {
    lease.session->Close(
        Status(Code::kAborted, "SESSION_ENDED", "the router opened another Session"));
  }
  lease.session = std::make_shared<Session>(found->first, door, clock_);
  lease.heard = clock_.Now();
  open_.insert(lease.session);
  SendCapacity(lease);
  return lease.session;
}

SessionHub::Lease* SessionHub::Touch(Session& session) {
  const auto found = leases_.find(session.router());
  if (found == leases_.end() || found->second.session.get() != &session) return nullptr;
  found->second.heard = clock_.Now();
  return &found->second;
}

void SessionHub::OnSubmit(Session& session, Generation generation, int64_t remaining_ms) {
  if (remaining_ms > 0) {
    const int64_t latest = clock_.UnixMs() + std::min(remaining_ms, kRemainingMsMax);
    const int64_t asked = generation.deadline_unix_ms;
    generation.deadline_unix_ms = asked > 0 ? std::min(asked, latest) : latest;
  }
  const uint64_t ordinal = generation.ordinal;
  const uint32_t attempt = generation.attempt;
  MutexLock lock(mutex_);
  Lease* lease = Touch(session);
  if (lease == nullptr) return;
  if (draining_) return Refuse(session, ordinal, attempt, Draining());
  if (generation.prompt.size() > static_cast<size_t>(kPromptInlineIdsMax)) {
    return Refuse(session, ordinal, attempt,
                  InvalidArgument("submit: the prompt has " +
                                  std::to_string(generation.prompt.size()) + " ids, at most " +
                                  std::to_string(kPromptInlineIdsMax) + " may come inline"));
  }
  if (!inbox_.TryPush({session.router(), SubmitCommand{std::move(generation)}})) {
    return Refuse(session, ordinal, attempt,
                  Status(Code::kResourceExhausted, "QUEUE_FULL", "the engine's inbox is full")
                      .WithRetryAfterMs(1000));
  }
  lease->live[ordinal] = attempt;
  lease->waiting.insert(ordinal);
}

void SessionHub::OnBadSubmit(Session& session, uint64_t ordinal, uint32_t attempt, Status status) {
  MutexLock lock(mutex_);
  if (Touch(session) != nullptr) Refuse(session, ordinal, attempt, std::move(status));
}

void SessionHub::Refuse(Session& session, uint64_t ordinal, uint32_t attempt, Status status) {
  std::vector<decltype(RouterEvent::what)> events;
  events.emplace_back(
      ErrorEvent{.ordinal = ordinal, .attempt = attempt, .status = std::move(status)});
  session.Send(std::move(events));
}

// A Cancel or FinishedSet that finds the inbox full is dropped: the router repeats its FinishedSet
// until it is acknowledged.
void SessionHub::OnCancel(Session& session, CancelCommand cancel) {
  MutexLock lock(mutex_);
  if (Touch(session) != nullptr) (void)inbox_.TryPush({session.router(), cancel});
}

void SessionHub::OnFinishedSet(Session& session, FinishedSetCommand finished) {
  MutexLock lock(mutex_);
  if (Touch(session) != nullptr) (void)inbox_.TryPush({session.router(), std::move(finished)});
}

void SessionHub::OnHeartbeat(Session& session) {
  MutexLock lock(mutex_);
  (void)Touch(session);
}

void SessionHub::OnEnd(const std::shared_ptr<Session>& session, bool clean) {
  MutexLock lock(mutex_);
  session->Detach();
  open_.erase(session);
  ended_.NotifyAll();
  const auto found = leases_.find(session->router());
  if (found == leases_.end() || found->second.session != session) return;
  found->second.session = nullptr;
  if (clean && session->ended_by_peer()) EndLease(session->router(), Status::Ok());
}

void SessionHub::EndLease(uint32_t router, Status status) {
  const auto found = leases_.find(router);
  if (found->second.session != nullptr) found->second.session->Close(std::move(status));
  leases_.erase(found);
  if (!inbox_.TryPush({router, RouterGone{}})) gone_.push_back(router);
  CloseWhenDrained();
}

void SessionHub::Tick() {
  MutexLock lock(mutex_);
  const TimePoint now = clock_.Now();
  // After a stall of our own, what the routers sent meanwhile still waits in the sockets: the time
  // that we were away does not count against them.
  const Duration away = now - std::exchange(last_tick_, now);
  std::erase_if(gone_, [this](uint32_t router) { return inbox_.TryPush({router, RouterGone{}}); });
  std::vector<uint32_t> expired;
  for (auto& [router, lease] : leases_) {
    if (away > std::chrono::milliseconds(kSuspectMs)) lease.heard += away;
    if (now - lease.heard > options_.lease) expired.push_back(router);
    if (lease.session == nullptr) continue;
    HeartbeatFrame heartbeat{clock_.UnixMs(), {}};
    for (const auto& [ordinal, attempt] : lease.live) heartbeat.live.push_back(ordinal);
    lease.session->SendLevel(std::move(heartbeat));
    SendCapacity(lease);
  }
  for (const uint32_t router : expired) {
    EndLease(router,
             Status(Code::kFailedPrecondition, "SESSION_ENDED", "the router's lease ran out"));
  }
  for (const std::shared_ptr<Session>& session : open_) session->Tick();
}

void SessionHub::SendCapacity(Lease& lease) {
  if (lease.session == nullptr) return;
  Capacity capacity = capacity_;
  capacity.draining = draining_;
  capacity.suspect = suspect_;
  capacity.submit_window =
      std::max<int64_t>(0, kSubmitWindow - static_cast<int64_t>(lease.waiting.size()));
  lease.session->SendLevel(capacity);
}

void SessionHub::StartDrain() {
  MutexLock lock(mutex_);
  draining_ = true;
  for (auto& [router, lease] : leases_) SendCapacity(lease);
  CloseWhenDrained();
}

void SessionHub::SetSuspect(bool suspect) {
  MutexLock lock(mutex_);
  if (std::exchange(suspect_, suspect) == suspect) return;
  for (auto& [router, lease] : leases_) SendCapacity(lease);
}

void SessionHub::CancelAll() {
  MutexLock lock(mutex_);
  for (const auto& [router, lease] : leases_) {
    // Those that find the inbox full still live, and the caller asks again while anything does.
    for (const auto& [ordinal, attempt] : lease.live) {
      (void)inbox_.TryPush({router, CancelCommand{.ordinal = ordinal, .attempt = attempt}});
    }
  }
}

void SessionHub::CloseWhenDrained() {
  const bool idle = std::all_of(leases_.begin(), leases_.end(),
                                [](const auto& entry) { return entry.second.live.empty(); });
  if (draining_ && idle) inbox_.Close();
}

void SessionHub::EndEpoch(const EpochEndFrame& end) {
  MutexLock lock(mutex_);
  epoch_over_ = true;
  for (const std::shared_ptr<Session>& session : open_) {
    session->SendLevel(end);
    session->Close(Status(Code::kUnavailable, "EPOCH_ENDED", end.message));
  }
  leases_.clear();
}

void SessionHub::AwaitEnds(TimePoint until) {
  MutexLock lock(mutex_);
  while (!open_.empty()) {
    if (!ended_.WaitUntil(mutex_, until)) return;
  }
}

int SessionHub::connected_routers() const {
  MutexLock lock(mutex_);
  return static_cast<int>(leases_.size());
}

Capacity SessionHub::capacity() const {
  MutexLock lock(mutex_);
  Capacity capacity = capacity_;
  capacity.suspect = suspect_;
  return capacity;
}

uint64_t SessionHub::higher_epoch() const {
  MutexLock lock(mutex_);
  return higher_epoch_;
}

void SessionHub::Note(Lease& lease, const decltype(RouterEvent::what)& event) {
  if (const auto* accepted = std::get_if<AcceptedEvent>(&event)) {
    if (accepted->admitted) lease.waiting.erase(accepted->ordinal);
  } else if (const auto* finished = std::get_if<FinishedEvent>(&event)) {
    lease.waiting.erase(finished->ordinal);
    lease.live.erase(finished->ordinal);
  } else if (const auto* error = std::get_if<ErrorEvent>(&event)) {
    lease.waiting.erase(error->ordinal);
    lease.live.erase(error->ordinal);
  }
}

void SessionHub::Deliver(std::vector<RouterEvent> events) {
  MutexLock lock(mutex_);
  std::map<uint32_t, std::vector<decltype(RouterEvent::what)>> by_router;
  for (RouterEvent& event : events) {
    const auto found = leases_.find(event.router);
    if (found == leases_.end()) continue;
    Note(found->second, event.what);
    if (found->second.session != nullptr) by_router[event.router].push_back(std::move(event.what));
  }
  for (auto& [router, frames] : by_router) leases_[router].session->Send(std::move(frames));
  CloseWhenDrained();
}

void SessionHub::OnCapacity(const Capacity& capacity) {
  MutexLock lock(mutex_);
  capacity_ = capacity;
  for (auto& [router, lease] : leases_) SendCapacity(lease);
}

}  // namespace levin
