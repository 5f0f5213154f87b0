// Where routers and the engine meet: leases, the opened Sessions, what of each router still lives.
// Commands go into the engine's inbox, the engine's events to the Session of their router. Knows no
// gRPC. Any thread may call any method.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mailbox.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "worker/engine/links.h"
#include "worker/engine/router_messages.h"
#include "worker/session/session.h"

namespace levin {

struct RouterHello {
  uint32_t protocol_major = 0;
  std::string router_id;
  uint64_t incarnation = 0;
  uint64_t highest_epoch_seen = 0;
  uint64_t tokenizer_hash = 0;  // 0: the router has none, or does not say
};

struct HubOptions {
  uint64_t epoch = 0;
  uint64_t tokenizer_hash = 0;  // 0: the model folder has none
  size_t routers_max = 256;
  Duration lease = std::chrono::seconds(10);
};

class SessionHub final : public Outbox {
 public:
  // `inbox` and `clock` must outlive it.
  SessionHub(HubOptions options, Mailbox<RouterCommand>& inbox, const Clock& clock);

  // The group is warm: Handshakes are answered from now on, before with MODEL_LOADING.
  void SetReady() EXCLUDES(mutex_);

  // Starts (or renews) the lease of this router incarnation and gives its Session token. A new
  // incarnation of a known router ends the old one's lease at once. Refusals: PROTOCOL_VERSION,
  // TOKENIZER_MISMATCH, EPOCH_MISMATCH (the router saw a higher epoch), MODEL_LOADING, EPOCH_ENDED.
  Result<std::string> Handshake(const RouterHello& hello) EXCLUDES(mutex_);

  // Opens the Session of a token; one that is open already is closed. SESSION_ENDED: unknown token,
  // Handshake again.
  Result<std::shared_ptr<Session>> Open(const std::string& token, SessionDoor& door)
      EXCLUDES(mutex_);

  // Frames of a Session, in their order. Each renews the lease. remaining_ms (0: none): what was
  // left of the deadline when the router sent it; the earlier of both by our own clock counts, so
  // that no difference of clocks extends a life.
  void OnSubmit(Session& session, Generation generation, int64_t remaining_ms) EXCLUDES(mutex_);
  void OnBadSubmit(Session& session, uint64_t ordinal, uint32_t attempt, Status status)
      EXCLUDES(mutex_);
  void OnCancel(Session& session, CancelCommand cancel) EXCLUDES(mutex_);
  void OnFinishedSet(Session& session, FinishedSetCommand finished) EXCLUDES(mutex_);
  void OnHeartbeat(Session& session) EXCLUDES(mutex_);
  // The stream is over. Cleanly (a half-close): the router is gone. Else its lease runs on.
  void OnEnd(const std::shared_ptr<Session>& session, bool clean) EXCLUDES(mutex_);

  // Each second, from a thread that is not the engine's: heartbeats and capacity out, leases out.
  void Tick() EXCLUDES(mutex_);

  // No new work from now on: Submits get DRAINING, Capacity says so. As soon as nothing that was
  // submitted lives any more, the engine's inbox is closed.
  void StartDrain() EXCLUDES(mutex_);
  void CancelAll() EXCLUDES(mutex_);

  // A rank is silent, or all are heard again: Capacity says so, at once when it changes. Submits
  // that are under way are taken all the same.
  void SetSuspect(bool suspect) EXCLUDES(mutex_);

  // Says EpochEnd on every Session and closes it; drops everything after.
  void EndEpoch(const EpochEndFrame& end) EXCLUDES(mutex_);
  // Until all closed Sessions are over or the time is up.
  void AwaitEnds(TimePoint until) EXCLUDES(mutex_);

  int connected_routers() const EXCLUDES(mutex_);
  uint64_t epoch() const { return options_.epoch; }
  Capacity capacity() const EXCLUDES(mutex_);
  // Highest epoch that a refused router spoke of; 0: none. The group restarts above it.
  uint64_t higher_epoch() const EXCLUDES(mutex_);

  // Outbox: the engine's side.
  void Deliver(std::vector<RouterEvent> events) override EXCLUDES(mutex_);
  void OnCapacity(const Capacity& capacity) override EXCLUDES(mutex_);

 private:
  struct Lease {
    std::string router_id;
    uint64_t incarnation = 0;
    std::string token;
    TimePoint heard;
    std::shared_ptr<Session> session;   // may be null: between two Sessions
    std::map<uint64_t, uint32_t> live;  // ordinal -> attempt: submitted and not ended
    std::set<uint64_t> waiting;         // of these: not yet admitted
  };

  Lease* Touch(Session& session) REQUIRES(mutex_);
  Status CheckHello(const RouterHello& hello) REQUIRES(mutex_);
  void Push(uint32_t router, decltype(RouterCommand::what) what) REQUIRES(mutex_);
  void EndLease(uint32_t router, Status status) REQUIRES(mutex_);
  void Refuse(Session& session, uint64_t ordinal, uint32_t attempt, Status status);
  void Note(Lease& lease, const decltype(RouterEvent::what)& event);
  void SendCapacity(Lease& lease) REQUIRES(mutex_);
  void CloseWhenDrained() REQUIRES(mutex_);

  const HubOptions options_;
  Mailbox<RouterCommand>& inbox_;
  const Clock& clock_;
  mutable Mutex mutex_;
  CondVar ended_;
  std::map<uint32_t, Lease> leases_ GUARDED_BY(mutex_);
  std::set<std::shared_ptr<Session>> open_ GUARDED_BY(mutex_);  // streams that are not over
  std::vector<uint32_t> gone_ GUARDED_BY(mutex_);  // RouterGone that found the inbox full
  Capacity capacity_ GUARDED_BY(mutex_);
  TimePoint last_tick_ GUARDED_BY(mutex_);
  uint32_t next_router_ GUARDED_BY(mutex_) = 1;
  uint64_t higher_epoch_ GUARDED_BY(mutex_) = 0;
  bool ready_ GUARDED_BY(mutex_) = false;
  bool draining_ GUARDED_BY(mutex_) = false;
  bool suspect_ GUARDED_BY(mutex_) = false;
  bool epoch_over_ GUARDED_BY(mutex_) = false;
};

}  // namespace levin
