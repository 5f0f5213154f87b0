// The lives of all generations that this router has given, or will give, to one group: queued,
// sent, admitted, over. Makes the frames that go to the leader and takes those that come back;
// knows nothing of gRPC.
//
// Any thread may call any method. Sinks are called outside of all locks, each in order and by one
// thread at a time: by the thread that brings a leader's frame (OnTokens, OnFinished, ...), or the
// one that calls DeliverPending; never from inside Submit or Cancel. OnDone comes exactly once to
// every sink that Submit took, whatever happens.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "router/dispatch/engine_client.h"
#include "router/dispatch/finished_level.h"
#include "router/dispatch/sink_queue.h"

namespace levin {

struct SubmitFrame {
  Generation generation;     // ordinal, request id and attempt set
  int64_t remaining_ms = 0;  // until the deadline, at the time of sending; 0: no deadline
};
struct CancelFrame {
  uint64_t ordinal = 0;
  uint32_t attempt = 0;
  CancelReason reason{};
};
using OutgoingFrame = std::variant<SubmitFrame, CancelFrame, FinishedSet>;

// Ids of one generation in one step's Tokens frame.
struct TokenRunIn {
  uint64_t ordinal = 0;
  int64_t first_index = 0;
  std::vector<SampledToken> tokens;
};

struct RequestTrackerOptions {
  int64_t queued_max = 1024;       // not yet admitted by the leader; beyond: QUEUE_FULL
  int64_t leader_queued_max = 16;  // of these, sent to the leader
  Duration finished_pace = std::chrono::milliseconds(10);
  Duration finished_repeat = std::chrono::seconds(1);
  uint64_t random_seed = 0;  // of the request ids
};

class RequestTracker final : public std::enable_shared_from_this<RequestTracker> {
 public:
  // `wake`: called outside of all locks when NextFrame, NextDue or DeliverPending have become worth
  // a call. Calls that outlive the tracker do nothing.
  static std::shared_ptr<RequestTracker> Create(RequestTrackerOptions options, const Clock& clock,
                                                std::function<void()> wake);
  ~RequestTracker();

  // --- those who want tokens

  // QUEUE_FULL (with a time to come back), DEADLINE_EXCEEDED, or the status of Close/Pause.
  Result<std::unique_ptr<Call>> Submit(Generation generation, std::unique_ptr<TokenSink> sink);

  // --- the state of the group

  // A Session is open: frames flow, new work is taken.
  void Open();
  // The group is silent: no new work and no Submit leaves; what was sent stays.
  void Pause(Status why);
  void Resume();
  // The Session, or the epoch, is over: every generation ends, with EPOCH_ENDED before its first
  // token and ENGINE_RESTARTED after. `why` answers later Submits until Open.
  void Close(Status why, std::string_view what_happened);
  // As Close for good, but every generation ends with `why`.
  void Shutdown(Status why);

  // --- frames to the leader: one at a time, in this order

  std::optional<OutgoingFrame> NextFrame();
  // Ends what is past its deadline; the time at which NextFrame or Tick is worth the next call.
  TimePoint Tick();
  void DeliverPending();

  // --- frames of the leader. Unknown ordinals (over here already) are ignored.

  void OnAccepted(uint64_t ordinal, bool admitted, int64_t cached_tokens);
  // A gap between the indices is an error of the Session, which must then be closed. Indices seen
  // before are dropped.
  Status OnTokens(std::vector<TokenRunIn> runs);
  // `ids_hash`: XXH3-64 over the output as little-endian u32; 0: not given. Tokens that are missing
  // or not the leader's are an error of the Session as well.
  Status OnFinished(uint64_t ordinal, FinishReason reason, const Usage& usage,
                    uint64_t ids_hash = 0);
  void OnError(uint64_t ordinal, Status status);
  void OnFreed(uint64_t watermark, std::span<const uint64_t> live);

  // --- for heartbeats, metrics and tests

  std::vector<uint64_t> live_ordinals() const;  // sent and not over, ascending
  int64_t queued() const;                       // not yet admitted
  int64_t running() const;                      // admitted and not over
  int64_t unfreed() const;                      // over, memory not known to be back
  Duration oldest_unfreed() const;              // how long the first of these has been over

 private:
  struct Entry;
  class CallHandle;
  using EntryPtr = std::shared_ptr<Entry>;

  RequestTracker(RequestTrackerOptions options, const Clock& clock, std::function<void()> wake);

  static Status CheckWhole(const Entry& entry, int64_t output_tokens, uint64_t ids_hash);
  void Cancel(const EntryPtr& entry, CancelReason reason);
  void EndLocked(const EntryPtr& entry, Status status, FinishReason reason, const Usage& usage)
      REQUIRES(mutex_);
  void EndHereLocked(const EntryPtr& entry, Status status, FinishReason reason) REQUIRES(mutex_);
  void AdmitLocked(const EntryPtr& entry) REQUIRES(mutex_);
  void ExpireLocked(TimePoint now) REQUIRES(mutex_);
  void EndAll(const std::function<Status(const Entry&)>& status);
  EntryPtr FindLocked(uint64_t ordinal) const REQUIRES(mutex_);
  Status AppendLocked(TokenRunIn run, std::vector<EntryPtr>& touched) REQUIRES(mutex_);
  SubmitFrame SendLocked(TimePoint now) REQUIRES(mutex_);
  bool MaySubmitLocked() const REQUIRES(mutex_);
  int64_t QueuedLocked() const REQUIRES(mutex_);
  int64_t RetryAfterMsLocked() const REQUIRES(mutex_);
  std::string NewRequestIdLocked() REQUIRES(mutex_);

  const RequestTrackerOptions options_;
  const Clock& clock_;
  const std::function<void()> wake_;

  mutable Mutex mutex_;
  bool open_ GUARDED_BY(mutex_) = false;
  bool shut_down_ GUARDED_BY(mutex_) = false;
  Status refusal_ GUARDED_BY(mutex_);  // not OK: no new work
  std::deque<EntryPtr> unsent_ GUARDED_BY(mutex_);
  std::map<uint64_t, EntryPtr> sent_ GUARDED_BY(mutex_);
  // Sent, not admitted, and not known to be gone from the leader: fills the leader's window.
  std::set<uint64_t> at_leader_ GUARDED_BY(mutex_);
  int64_t admitted_ GUARDED_BY(mutex_) = 0;
  std::deque<CancelFrame> cancels_ GUARDED_BY(mutex_);
  FinishedLevel finished_ GUARDED_BY(mutex_);
  std::set<std::pair<TimePoint, EntryPtr>> deadlines_ GUARDED_BY(mutex_);
  std::vector<EntryPtr> undelivered_ GUARDED_BY(mutex_);
  std::mt19937_64 random_ GUARDED_BY(mutex_);
  std::optional<TimePoint> last_admission_ GUARDED_BY(mutex_);
  double admission_interval_ms_ GUARDED_BY(mutex_) = 100;  // smoothed
};

}  // namespace levin
