#include "worker/rpc/group_service.h"

#include <map>
#include <utility>

#include "common/base/mutex.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/limits.h"
#include "levin/v1/group.grpc.pb.h"
#include "worker/rpc/frame_queue.h"

namespace levin {
namespace {

using JoinReactorBase = grpc::ServerBidiReactor<v1::JoinRequest, v1::JoinResponse>;

class JoinReactor;

// The streams of the ranks that joined.
class Streams {
 public:
  virtual ~Streams() = default;
  virtual Status Enter(int rank, JoinReactor& reactor, const RankHello& hello) = 0;
  virtual void Leave(int rank, JoinReactor& reactor, const Status& why) = 0;
};

RankHello FromProto(const v1::Hello& proto) {
  return {.rank = static_cast<int>(proto.rank()),
          .world_size = static_cast<int>(proto.world_size()),
          .build_id = proto.build_id(),
          .protocol = proto.protocol(),
          .config_hash = proto.config_hash(),
          .host = proto.host(),
          .device = proto.device(),
          .pid = proto.pid()};
}

// One rank's stream. Deletes itself when gRPC is done with it.
class JoinReactor final : public JoinReactorBase {
 public:
  JoinReactor(Streams& streams, RankBoard& board, grpc::CallbackServerContext& context)
      : streams_(streams), board_(board), context_(context) {
    StartRead(&request_);
  }

  // False when the rank reads too slowly: its stream is cut.
  bool Send(const v1::JoinResponse& frame) {
    MutexLock lock(mutex_);
    if (ending_) return true;
    if (!queue_.Push(frame)) {
      context_.TryCancel();
      return false;
    }
    WriteNext();
    return true;
  }
  // What waits still leaves.
  void End(const Status& status) {
    MutexLock lock(mutex_);
    EndLocked(status);
  }
  void Cut() { context_.TryCancel(); }

  void OnReadDone(bool ok) override {
    if (!ok) return End(Unavailable("the rank ended its stream"));
    const Status handled = Handle();
    if (!handled.ok()) {
      fault_ = handled;
      return End(handled);
    }
    request_.Clear();
    StartRead(&request_);
  }
  void OnWriteDone(bool ok) override {
    MutexLock lock(mutex_);
    queue_.Done();
    if (ok) return WriteNext();
    while (!queue_.empty()) queue_.Done();
    EndLocked(Unavailable("the stream broke"));
    WriteNext();
  }
  void OnDone() override {
    if (rank_ > 0) {
      streams_.Leave(rank_, *this,
                     fault_.ok() ? Unavailable("rank " + std::to_string(rank_) +
                                               " is gone: its Join stream broke")
                                 : fault_);
    }
    delete this;
  }

 private:
  Status Handle() {
    if (rank_ == 0 && request_.frame_case() != v1::JoinRequest::kHello) {
      return FailedPrecondition("the first frame of Join must be Hello");
    }
    switch (request_.frame_case()) {
      case v1::JoinRequest::kHello:
        return HandleHello(FromProto(request_.hello()));
      case v1::JoinRequest::kProgress:
        board_.OnProgress(rank_, request_.progress().bytes_done(),
                          request_.progress().bytes_total());
        return Status::Ok();
      case v1::JoinRequest::kLoaded:
        board_.OnLoaded(rank_, {static_cast<int64_t>(request_.loaded().free_device_bytes()),
                                request_.loaded().weights_digest()});
        return Status::Ok();
      case v1::JoinRequest::kReady:
        board_.OnReady(rank_, static_cast<int64_t>(request_.ready().step_us()));
        return Status::Ok();
      case v1::JoinRequest::kStepDone:
        board_.OnStepDone(rank_, request_.step_done().step(), request_.step_done().digest());
        return Status::Ok();
      case v1::JoinRequest::kFault: {
        const v1::Fault& fault = request_.fault();
        return Status(Code::kUnavailable,
                      "rank " + std::to_string(rank_) + " failed in " + fault.operation() +
                          ", step " + std::to_string(fault.step()) + ": " + fault.message());
      }
      case v1::JoinRequest::kHeartbeat:
      case v1::JoinRequest::FRAME_NOT_SET:
        board_.OnHeartbeat(rank_);
        return Status::Ok();
    }
    return Status::Ok();
  }

  Status HandleHello(const RankHello& hello) {
    if (rank_ != 0)
      return FailedPrecondition("rank " + std::to_string(rank_) + " said Hello twice");
    RETURN_IF_ERROR(streams_.Enter(hello.rank, *this, hello));
    rank_ = hello.rank;
    return Status::Ok();
  }

  void EndLocked(const Status& status) REQUIRES(mutex_) {
    if (ending_) return;
    ending_ = true;
    end_ = status;
    WriteNext();
  }

  void WriteNext() REQUIRES(mutex_) {
    if (const v1::JoinResponse* frame = queue_.Begin()) {
      StartWrite(frame);
    } else if (ending_ && !finished_ && !queue_.writing()) {
      finished_ = true;
      Finish(ToGrpc(end_));
    }
  }

  Streams& streams_;
  RankBoard& board_;
  grpc::CallbackServerContext& context_;
  v1::JoinRequest request_;
  int rank_ = 0;  // reading side only; 0: no Hello yet
  Status fault_;  // reading side only
  Mutex mutex_;
  FrameQueue<v1::JoinResponse> queue_ GUARDED_BY(mutex_);
  bool ending_ GUARDED_BY(mutex_) = false;
  bool finished_ GUARDED_BY(mutex_) = false;
  Status end_ GUARDED_BY(mutex_);
};

class GroupServiceImpl final : public GroupService,
                               public v1::Group::CallbackService,
                               private Streams {
 public:
  explicit GroupServiceImpl(RankBoard& board) : board_(board) {}

  grpc::Service& service() override { return *this; }

  Status SendWelcome(const WelcomeFacts& welcome) override {
    v1::JoinResponse frame;
    v1::Welcome* proto = frame.mutable_welcome();
    proto->set_epoch(welcome.epoch);
    proto->set_group_id(welcome.group_id);
    proto->set_collective(v1::COLLECTIVE_KIND_SHARED_MEMORY);
    proto->set_shared_memory_name(welcome.shared_memory_name);
    return Broadcast(frame);
  }

  Status SendPool(const PoolFacts& pool) override {
    v1::JoinResponse frame;
    frame.mutable_pool()->set_slots(pool.slots);
    frame.mutable_pool()->set_blocks(pool.blocks);
    return Broadcast(frame);
  }

  void SendHeartbeat(uint64_t step, int64_t unix_ms) override {
    v1::JoinResponse frame;
    frame.mutable_heartbeat()->set_step(step);
    frame.mutable_heartbeat()->set_unix_ms(unix_ms);
    (void)Broadcast(frame);
  }

  Status SendPlan(const std::string& encoded) override {
    v1::JoinResponse frame;
    frame.mutable_plan()->set_encoded(encoded);
    return Broadcast(frame);
  }

  Result<std::vector<uint64_t>> AwaitDigests(uint64_t step) override {
    return board_.AwaitDigests(step, std::chrono::milliseconds(kCollectiveLimitMs));
  }

  void Shutdown(const std::string& reason, TimePoint until) override {
    v1::JoinResponse frame;
    frame.mutable_shutdown()->set_reason(reason);
    frame.mutable_shutdown()->set_drain(true);
    (void)Broadcast(frame);
    MutexLock lock(mutex_);
    for (auto& [rank, reactor] : streams_) reactor->End(Status::Ok());
    while (!streams_.empty()) {
      if (!left_.WaitUntil(mutex_, until)) break;
    }
  }

  void Break(const Status& why) override {
    MutexLock lock(mutex_);
    for (auto& [rank, reactor] : streams_) reactor->End(why);
  }

 private:
  JoinReactorBase* Join(grpc::CallbackServerContext* context) override {
    return new JoinReactor(*this, board_, *context);
  }

  Status Enter(int rank, JoinReactor& reactor, const RankHello& hello) override {
    MutexLock lock(mutex_);
    RETURN_IF_ERROR(board_.Join(hello));
    streams_[rank] = &reactor;
    return Status::Ok();
  }

  void Leave(int rank, JoinReactor& reactor, const Status& why) override {
    board_.OnGone(rank, why);
    MutexLock lock(mutex_);
    streams_.erase(rank);
    left_.NotifyAll();
  }

  Status Broadcast(const v1::JoinResponse& frame) {
    MutexLock lock(mutex_);
    for (auto& [rank, reactor] : streams_) {
      if (!reactor->Send(frame)) {
        return Unavailable("rank " + std::to_string(rank) + " does not read its Join stream");
      }
    }
    return Status::Ok();
  }

  RankBoard& board_;
  Mutex mutex_;
  CondVar left_;
  std::map<int, JoinReactor*> streams_ GUARDED_BY(mutex_);  // alive until Leave
};

}  // namespace

std::unique_ptr<GroupService> MakeGroupService(RankBoard& board) {
  return std::make_unique<GroupServiceImpl>(board);
}

}  // namespace levin
