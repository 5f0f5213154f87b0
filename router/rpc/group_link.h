// What stands behind a GrpcEngineClient: all of its state, its thread, the Session of the moment.
// group_link.cc is its life, group_link_frames.cc what goes over the Session.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "router/dispatch/engine_client.h"
#include "router/dispatch/peer_health.h"
#include "router/dispatch/request_tracker.h"
#include "router/dispatch/wake_bell.h"
#include "router/rpc/engine_session.h"
#include "router/rpc/grpc_engine_client.h"

namespace levin {

// One thread runs Connect and Serve; the session's frames come in on gRPC's threads.
class GroupLink final : public EngineSession::Owner {
 public:
  GroupLink(GrpcEngineClientOptions options, const Clock& clock, std::function<void()> on_change);

  Status CheckFits(const Generation& generation) const;
  void Stop();

  // EngineSession::Owner
  bool NextRequest(v1::SessionRequest* request) override;
  Status OnResponse(const v1::SessionResponse& response) override;
  void OnSessionClosed(const Status& status) override;

  std::shared_ptr<const GroupInfo> group() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return ready_ ? info_ : nullptr;
  }
  Capacity capacity() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return capacity_;
  }
  RequestTracker& tracker() const { return *tracker_; }

 private:
  void Run();
  bool Connect();
  void Serve();
  void Beat(TimePoint now);
  void JudgePeer(TimePoint now);
  void Suspend(Status why);
  void SayGoodbye();
  void Lose();
  void SetReady(bool ready);
  bool SessionClosed() const EXCLUDES(mutex_);
  void WaitForClose(TimePoint until);

  Status OnTokens(const v1::Tokens& tokens);
  Status OnFrame(const v1::SessionResponse& response);
  void OnCapacity(const v1::Capacity& capacity);

  const GrpcEngineClientOptions options_;
  const Clock& clock_;
  const std::function<void()> on_change_;
  const std::shared_ptr<WakeBell> bell_ = std::make_shared<WakeBell>();
  const std::shared_ptr<RequestTracker> tracker_;
  const std::unique_ptr<v1::Engine::Stub> stub_;

  std::atomic<bool> stopping_ = false;
  std::atomic<bool> beat_due_ = false;
  std::atomic<TimePoint::rep> heard_ = 0;
  std::atomic<uint64_t> received_seq_ = 0;  // the highest of the leader's
  uint64_t sent_seq_ = 0;                   // under the session's lock

  // The client's thread.
  uint64_t highest_epoch_ = 0;
  std::string session_token_;
  Status refusal_;  // why the last Connect failed
  std::optional<PeerHealth> health_;
  TimePoint next_beat_{};
  std::shared_ptr<EngineSession> session_;

  mutable Mutex mutex_;
  std::shared_ptr<const GroupInfo> info_ GUARDED_BY(mutex_);
  v1::Geometry geometry_ GUARDED_BY(mutex_);
  int64_t prompt_ids_max_ GUARDED_BY(mutex_) = 0;
  bool ready_ GUARDED_BY(mutex_) = false;
  Capacity capacity_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = true;
  Status close_status_ GUARDED_BY(mutex_);
  std::string epoch_end_reason_ GUARDED_BY(mutex_);
  std::string epoch_end_ GUARDED_BY(mutex_);                     // what the leader said, if it did
  grpc::ClientContext* handshake_ GUARDED_BY(mutex_) = nullptr;  // under way

  std::thread thread_;  // the last member: it uses all others
};

// No group takes work now; retry in a second.
Status NoGroup(std::string message);

}  // namespace levin
