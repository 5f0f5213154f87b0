// What the leader knows of ranks 1 .. N-1: how far each is in the start-up, which steps it
// reported, when it was heard last. The threads of the streams write, start-up and engine wait
// here. A loss ends everything: every wait returns it, and `on_lost` is called once. Any thread may
// call any method.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "worker/group/rank_hello.h"

namespace levin {

struct LoadedFacts {
  int64_t free_bytes = 0;
  uint64_t weights_digest = 0;
};

struct RankLoss {
  int rank = -1;
  std::string reason;  // of EpochEnd: rank_lost, hang, other
  Status status;
};

struct RankView {   // for health and metrics
  bool up = false;  // joined, heard within 3 s
  uint64_t step_done = 0;
  Duration silent{};
  uint64_t bytes_done = 0, bytes_total = 0;
};

class RankBoard final {
 public:
  using OnLost = std::function<void(const RankLoss&)>;

  // `on_lost` runs on the thread that saw the loss, outside the lock; it must not block.
  RankBoard(RankHello leader, const Clock& clock, OnLost on_lost);

  // A rank's stream, in its order. Join refuses (CheckHello, or a rank that is here already)
  // without harm to the group.
  Status Join(const RankHello& hello) EXCLUDES(mutex_);
  void OnProgress(int rank, uint64_t bytes_done, uint64_t bytes_total) EXCLUDES(mutex_);
  void OnLoaded(int rank, LoadedFacts facts) EXCLUDES(mutex_);
  void OnReady(int rank, int64_t step_us) EXCLUDES(mutex_);
  void OnStepDone(int rank, uint64_t step, uint64_t digest) EXCLUDES(mutex_);
  void OnHeartbeat(int rank) EXCLUDES(mutex_);
  // The stream broke, or the rank reported a fault. Before Start it may come again; after, the
  // group is lost. An ordered end (Stop) loses nobody.
  void OnGone(int rank, const Status& why) EXCLUDES(mutex_);

  // From here on every loss is final: called before Welcome goes out. kUnavailable when a rank left
  // again meanwhile.
  Status Start() EXCLUDES(mutex_);
  void Stop() EXCLUDES(mutex_);

  // Start-up waits: until all ranks are there, a rank is lost, or nothing moved for `stall`
  // (kDeadlineExceeded, names the ranks that are missing).
  Status AwaitJoined(Duration stall) EXCLUDES(mutex_);
  Result<std::vector<LoadedFacts>> AwaitLoaded(Duration stall) EXCLUDES(mutex_);  // [i]: rank i + 1
  Result<int64_t> AwaitReady(Duration stall) EXCLUDES(mutex_);  // the slowest's step_us

  // [i]: rank i + 1. Bounded by `limit`.
  Result<std::vector<uint64_t>> AwaitDigests(uint64_t step, Duration limit) EXCLUDES(mutex_);

  // Each second: a rank that was silent for kLostMs is lost. Time in which this process itself did
  // not run does not count.
  void Tick() EXCLUDES(mutex_);

  bool all_heard() const EXCLUDES(mutex_);               // within kSuspectMs
  std::vector<RankView> views() const EXCLUDES(mutex_);  // [i]: rank i + 1
  std::optional<RankLoss> loss() const EXCLUDES(mutex_);

  // The leader itself found something that ends the epoch.
  void Lose(RankLoss loss) EXCLUDES(mutex_);

 private:
  enum class Phase { kAbsent, kJoined, kLoaded, kReady };
  struct Rank {
    Phase phase = Phase::kAbsent;
    TimePoint heard;
    LoadedFacts loaded;
    int64_t step_us = 0;
    uint64_t bytes_done = 0, bytes_total = 0;
    uint64_t step_done = 0;
    std::deque<std::pair<uint64_t, uint64_t>> digests;  // (step, digest) not yet taken
  };

  Rank& at(int rank) REQUIRES(mutex_) { return ranks_[static_cast<size_t>(rank - 1)]; }
  void Advance(int rank, Phase phase) REQUIRES(mutex_);
  bool SetLoss(RankLoss loss) REQUIRES(mutex_);
  Status AwaitPhase(Phase phase, const char* what, Duration stall) REQUIRES(mutex_);
  std::string Missing(Phase phase) const REQUIRES(mutex_);

  const RankHello leader_;
  const Clock& clock_;
  const OnLost on_lost_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Rank> ranks_ GUARDED_BY(mutex_);
  TimePoint moved_ GUARDED_BY(mutex_);  // last progress of anyone in the start-up
  TimePoint last_tick_ GUARDED_BY(mutex_);
  std::optional<RankLoss> loss_ GUARDED_BY(mutex_);
  bool started_ GUARDED_BY(mutex_) = false;
  bool stopped_ GUARDED_BY(mutex_) = false;
};

}  // namespace levin
