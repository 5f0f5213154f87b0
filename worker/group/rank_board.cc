#include "worker/group/rank_board.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/rpc/limits.h"

namespace levin {
namespace {

constexpr Duration kSuspect = std::chrono::milliseconds(kSuspectMs);
constexpr Duration kLost = std::chrono::milliseconds(kLostMs);

// A follower is at most one step ahead of what the leader has taken.
constexpr size_t kDigestsMax = 16;

std::string Seconds(Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(duration).count()) + " s";
}

}  // namespace

RankBoard::RankBoard(RankHello leader, const Clock& clock, OnLost on_lost)
    : leader_(std::move(leader)),
      clock_(clock),
      on_lost_(std::move(on_lost)),
      ranks_(static_cast<size_t>(leader_.world_size - 1)),
      moved_(clock.Now()),
      last_tick_(clock.Now()) {}

Status RankBoard::Join(const RankHello& hello) {
  RETURN_IF_ERROR(CheckHello(leader_, hello));
  MutexLock lock(mutex_);
  Rank& rank = at(hello.rank);
  if (rank.phase != Phase::kAbsent || started_) {
    return Status(Code::kAlreadyExists, "rank " + std::to_string(hello.rank) + " (host " +
                                            hello.host + ", pid " + std::to_string(hello.pid) +
                                            ") cannot join: the group has that rank already");
  }
  rank.heard = clock_.Now();
  Advance(hello.rank, Phase::kJoined);
  return Status::Ok();
}

void RankBoard::Advance(int rank, Phase phase) {
  at(rank).phase = phase;
  moved_ = clock_.Now();
  changed_.NotifyAll();
}

void RankBoard::OnProgress(int rank, uint64_t bytes_done, uint64_t bytes_total) {
  MutexLock lock(mutex_);
  if (bytes_done != at(rank).bytes_done) moved_ = clock_.Now();
  at(rank).bytes_done = bytes_done;
  at(rank).bytes_total = bytes_total;
  at(rank).heard = clock_.Now();
}

void RankBoard::OnLoaded(int rank, LoadedFacts facts) {
  MutexLock lock(mutex_);
  at(rank).loaded = facts;
  Advance(rank, Phase::kLoaded);
}

void RankBoard::OnReady(int rank, int64_t step_us) {
  MutexLock lock(mutex_);
  at(rank).step_us = step_us;
  Advance(rank, Phase::kReady);
}

void RankBoard::OnStepDone(int rank, uint64_t step, uint64_t digest) {
  MutexLock lock(mutex_);
  Rank& state = at(rank);
  state.heard = clock_.Now();
  state.step_done = step;
  state.digests.emplace_back(step, digest);
  if (state.digests.size() > kDigestsMax) state.digests.pop_front();
  changed_.NotifyAll();
}

void RankBoard::OnHeartbeat(int rank) {
  MutexLock lock(mutex_);
  at(rank).heard = clock_.Now();
}

void RankBoard::OnGone(int rank, const Status& why) {
  std::optional<RankLoss> loss;
  {
    MutexLock lock(mutex_);
    if (stopped_) return;
    if (!started_) {
      at(rank) = Rank();
      changed_.NotifyAll();
      return;
    }
    RankLoss candidate{rank, "rank_lost", why};
    if (SetLoss(candidate)) loss = std::move(candidate);
  }
  if (loss) on_lost_(*loss);
}

void RankBoard::Lose(RankLoss loss) {
  {
    MutexLock lock(mutex_);
    if (!SetLoss(loss)) return;
  }
  on_lost_(loss);
}

// The first loss is the one that explains the others.
bool RankBoard::SetLoss(RankLoss loss) {
  if (loss_ || stopped_) return false;
  loss_ = std::move(loss);
  changed_.NotifyAll();
  return true;
}

Status RankBoard::Start() {
  MutexLock lock(mutex_);
  started_ = true;
  const std::string missing = Missing(Phase::kJoined);
  return missing.empty() ? Status::Ok()
                         : Unavailable("rank " + missing + " left before the group began");
}

void RankBoard::Stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
}

std::string RankBoard::Missing(Phase phase) const {
  std::string missing;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i].phase < phase) missing += (missing.empty() ? "" : ", ") + std::to_string(i + 1);
  }
  return missing;
}

Status RankBoard::AwaitPhase(Phase phase, const char* what, Duration stall) {
  moved_ = clock_.Now();
  while (true) {
    if (loss_) return loss_->status;
    if (std::all_of(ranks_.begin(), ranks_.end(),
                    [phase](const Rank& rank) { return rank.phase >= phase; })) {
      return Status::Ok();
    }
    const TimePoint until = moved_ + stall;
    if (clock_.Now() >= until) {
      return Status(Code::kDeadlineExceeded, "nothing moved for " + Seconds(stall) + "; not yet " +
                                                 what + ": rank " + Missing(phase));
    }
    (void)changed_.WaitUntil(mutex_, until);
  }
}

Status RankBoard::AwaitJoined(Duration stall) {
  MutexLock lock(mutex_);
  return AwaitPhase(Phase::kJoined, "here", stall);
}

Result<std::vector<LoadedFacts>> RankBoard::AwaitLoaded(Duration stall) {
  MutexLock lock(mutex_);
  RETURN_ERROR_IF(AwaitPhase(Phase::kLoaded, "loaded", stall));
  std::vector<LoadedFacts> facts;
  for (const Rank& rank : ranks_) facts.push_back(rank.loaded);
  return facts;
}

Result<int64_t> RankBoard::AwaitReady(Duration stall) {
  MutexLock lock(mutex_);
  RETURN_ERROR_IF(AwaitPhase(Phase::kReady, "warm", stall));
  int64_t step_us = 0;
  for (const Rank& rank : ranks_) step_us = std::max(step_us, rank.step_us);
  return step_us;
}

Result<std::vector<uint64_t>> RankBoard::AwaitDigests(uint64_t step, Duration limit) {
  MutexLock lock(mutex_);
  const TimePoint until = clock_.Now() + limit;
  std::vector<uint64_t> digests;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    while (!loss_ && (rank.digests.empty() || rank.digests.front().first < step)) {
      if (!rank.digests.empty()) {
        rank.digests.pop_front();  // of a step whose wait was given up
        continue;
      }
      if (clock_.Now() >= until) {
        return Error(Status(Code::kUnavailable, "rank " + std::to_string(i + 1) +
                                                    " did not report step " + std::to_string(step) +
                                                    " within " + Seconds(limit)));
      }
      (void)changed_.WaitUntil(mutex_, until);
    }
    if (loss_) return Error(loss_->status);
    if (rank.digests.front().first != step) {
      return Error(FailedPrecondition("rank " + std::to_string(i + 1) + " reported step " +
                                      std::to_string(rank.digests.front().first) + ", expected " +
                                      std::to_string(step)));
    }
    digests.push_back(rank.digests.front().second);
    rank.digests.pop_front();
  }
  return digests;
}

void RankBoard::Tick() {
  std::optional<RankLoss> loss;
  {
    MutexLock lock(mutex_);
    const TimePoint now = clock_.Now();
    const Duration away = now - std::exchange(last_tick_, now);
    for (size_t i = 0; i < ranks_.size(); ++i) {
      Rank& rank = ranks_[i];
      if (rank.phase == Phase::kAbsent) continue;
      if (away > kSuspect) rank.heard += away;  // what it sent meanwhile still waits in the socket
      if (!started_ || loss || now - rank.heard <= kLost) continue;
      RankLoss candidate{
          static_cast<int>(i) + 1, "rank_lost",
          Status(Code::kUnavailable,
                 "rank " + std::to_string(i + 1) + " was silent for " + Seconds(now - rank.heard))};
      if (SetLoss(candidate)) loss = std::move(candidate);
    }
  }
  if (loss) on_lost_(*loss);
}

bool RankBoard::all_heard() const {
  MutexLock lock(mutex_);
  const TimePoint now = clock_.Now();
  return std::all_of(ranks_.begin(), ranks_.end(), [now](const Rank& rank) {
    return rank.phase != Phase::kAbsent && now - rank.heard <= kSuspect;
  });
}

std::vector<RankView> RankBoard::views() const {
  MutexLock lock(mutex_);
  const TimePoint now = clock_.Now();
  std::vector<RankView> views;
  for (const Rank& rank : ranks_) {
    const bool here = rank.phase != Phase::kAbsent;
    const Duration silent = here ? now - rank.heard : Duration{};
    views.push_back(
        {here && silent <= kSuspect, rank.step_done, silent, rank.bytes_done, rank.bytes_total});
  }
  return views;
}

std::optional<RankLoss> RankBoard::loss() const {
  MutexLock lock(mutex_);
  return loss_;
}

}  // namespace levin
