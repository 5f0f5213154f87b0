#include "worker/group/leader_board.h"

#include <utility>

#include "common/rpc/limits.h"

namespace levin {
namespace {

constexpr Duration kSuspect = std::chrono::milliseconds(kSuspectMs);
constexpr Duration kLost = std::chrono::milliseconds(kLostMs);
constexpr size_t kPlansMax = 16;  // the leader waits for digests: two are outstanding at most

}  // namespace

LeaderBoard::LeaderBoard(const Clock& clock, OnLost on_lost)
    : clock_(clock), on_lost_(std::move(on_lost)), heard_(clock.Now()), last_tick_(clock.Now()) {}

void LeaderBoard::OnWelcome(WelcomeFacts welcome) {
  MutexLock lock(mutex_);
  heard_ = clock_.Now();
  welcome_ = std::move(welcome);
  welcomed_ = true;
  changed_.NotifyAll();
}

void LeaderBoard::OnPool(PoolFacts pool) {
  MutexLock lock(mutex_);
  heard_ = clock_.Now();
  pool_ = pool;
  changed_.NotifyAll();
}

void LeaderBoard::OnPlan(std::string encoded) {
  bool flooded = false;
  {
    MutexLock lock(mutex_);
    heard_ = clock_.Now();
    plans_.push_back(std::move(encoded));
    flooded = plans_.size() > kPlansMax;
    changed_.NotifyAll();
  }
  if (flooded)
    OnBroken(ResourceExhausted("the leader sent plans without waiting for their digests"));
}

void LeaderBoard::OnHeartbeat() {
  MutexLock lock(mutex_);
  heard_ = clock_.Now();
}

void LeaderBoard::OnShutdown() {
  MutexLock lock(mutex_);
  shutdown_ = true;
  changed_.NotifyAll();
}

void LeaderBoard::OnBroken(const Status& why) {
  {
    MutexLock lock(mutex_);
    if (!SetBroken(why)) return;
  }
  on_lost_(why);
}

bool LeaderBoard::SetBroken(const Status& why) {
  if (shutdown_ || broken_) return false;
  broken_ = why;
  changed_.NotifyAll();
  return true;
}

template <typename T>
Result<T> LeaderBoard::Await(std::optional<T>& value, const char* what, Duration limit) {
  const TimePoint until = clock_.Now() + limit;
  while (!value) {
    if (broken_) return Error(*broken_);
    if (shutdown_) return Error(Status(Code::kCancelled, "the leader shut down"));
    if (clock_.Now() >= until)
      return Error(
          Status(Code::kDeadlineExceeded, std::string("the leader sent no ") + what + " in time"));
    (void)changed_.WaitUntil(mutex_, until);
  }
  T taken = *std::move(value);
  value.reset();
  return taken;
}

Result<WelcomeFacts> LeaderBoard::AwaitWelcome(Duration limit) {
  MutexLock lock(mutex_);
  return Await(welcome_, "Welcome", limit);
}

Result<PoolFacts> LeaderBoard::AwaitPool(Duration limit) {
  MutexLock lock(mutex_);
  return Await(pool_, "Pool", limit);
}

Result<std::optional<std::string>> LeaderBoard::AwaitPlan() {
  MutexLock lock(mutex_);
  while (plans_.empty()) {
    if (broken_) return Error(*broken_);
    if (shutdown_) return std::optional<std::string>();
    changed_.Wait(mutex_);
  }
  std::optional<std::string> plan = std::move(plans_.front());
  plans_.pop_front();
  return plan;
}

void LeaderBoard::Tick() {
  std::optional<Status> why;
  {
    MutexLock lock(mutex_);
    const TimePoint now = clock_.Now();
    const Duration away = now - std::exchange(last_tick_, now);
    if (away > kSuspect) heard_ += away;  // what it sent meanwhile still waits in the socket
    if (!welcomed_ || now - heard_ <= kLost) return;
    const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(now - heard_).count();
    Status silent(Code::kUnavailable,
                  "the leader was silent for " + std::to_string(seconds) + " s");
    if (!SetBroken(silent)) return;
    why = std::move(silent);
  }
  on_lost_(*why);
}

bool LeaderBoard::heard() const {
  MutexLock lock(mutex_);
  return welcomed_ && !broken_ && clock_.Now() - heard_ <= kSuspect;
}

std::optional<Status> LeaderBoard::broken() const {
  MutexLock lock(mutex_);
  return broken_;
}

}  // namespace levin
