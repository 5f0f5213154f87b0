// A follower's view of its leader: what came in by the Join stream and waits to be used, and
// whether the leader still lives. The stream's threads write, start-up and engine wait here; a
// break ends every wait. Any thread may call any method.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/status.h"

namespace levin {

struct WelcomeFacts {
  uint64_t epoch = 0;
  std::string group_id;
  std::string shared_memory_name;
};

struct PoolFacts {
  int64_t slots = 0;
  int64_t blocks = 0;
};

class LeaderBoard final {
 public:
  using OnLost = std::function<void(const Status&)>;

  // `on_lost` runs once, on the thread that saw the break, outside the lock; it must not block.
  LeaderBoard(const Clock& clock, OnLost on_lost);

  // The stream, in its order.
  void OnWelcome(WelcomeFacts welcome) EXCLUDES(mutex_);
  void OnPool(PoolFacts pool) EXCLUDES(mutex_);
  void OnPlan(std::string encoded) EXCLUDES(mutex_);
  void OnHeartbeat() EXCLUDES(mutex_);
  void OnShutdown() EXCLUDES(mutex_);  // in order: what was planned before is still done
  void OnBroken(const Status& why) EXCLUDES(mutex_);

  // kDeadlineExceeded after `limit`, or the break. kCancelled: the leader shut down in order.
  Result<WelcomeFacts> AwaitWelcome(Duration limit) EXCLUDES(mutex_);
  Result<PoolFacts> AwaitPool(Duration limit) EXCLUDES(mutex_);
  // No limit of its own: an idle group waits for hours, and Tick ends the wait when the leader
  // dies. nullopt: ordered shutdown.
  Result<std::optional<std::string>> AwaitPlan() EXCLUDES(mutex_);

  // Each second: a leader that was silent for kLostMs since its Welcome is lost.
  void Tick() EXCLUDES(mutex_);

  bool heard() const EXCLUDES(mutex_);  // within kSuspectMs
  std::optional<Status> broken() const EXCLUDES(mutex_);

 private:
  template <typename T>
  Result<T> Await(std::optional<T>& value, const char* what, Duration limit) REQUIRES(mutex_);
  bool SetBroken(const Status& why) REQUIRES(mutex_);

  const Clock& clock_;
  const OnLost on_lost_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::optional<WelcomeFacts> welcome_ GUARDED_BY(mutex_);
  std::optional<PoolFacts> pool_ GUARDED_BY(mutex_);
  std::deque<std::string> plans_ GUARDED_BY(mutex_);
  TimePoint heard_ GUARDED_BY(mutex_);
  TimePoint last_tick_ GUARDED_BY(mutex_);
  bool welcomed_ GUARDED_BY(mutex_) = false;
  bool shutdown_ GUARDED_BY(mutex_) = false;
  std::optional<Status> broken_ GUARDED_BY(mutex_);
};

}  // namespace levin
