#include "worker/rpc/group_client.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <utility>

#include "common/base/mutex.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/transport.h"
#include "levin/v1/group.grpc.pb.h"
#include "worker/rpc/frame_queue.h"

namespace levin {
namespace {

class GroupClientImpl final : public GroupClient,
                              private grpc::ClientBidiReactor<v1::JoinRequest, v1::JoinResponse> {
 public:
  GroupClientImpl(std::shared_ptr<grpc::Channel> channel, const RankHello& hello,
                  LeaderBoard& board)
      : board_(board), stub_(v1::Group::NewStub(channel)) {
    stub_->async()->Join(&context_, this);
    // Frames are written from threads that are no reactions of this stream.
    AddHold();
    v1::JoinRequest request;
    v1::Hello* proto = request.mutable_hello();
    proto->set_rank(static_cast<uint32_t>(hello.rank));
    proto->set_world_size(static_cast<uint32_t>(hello.world_size));
    proto->set_build_id(hello.build_id);
    proto->set_protocol(hello.protocol);
    proto->set_config_hash(hello.config_hash);
    proto->set_host(hello.host);
    proto->set_device(hello.device);
    proto->set_pid(hello.pid);
    Send(std::move(request));
    StartRead(&response_);
    StartCall();
  }

  ~GroupClientImpl() override {
    context_.TryCancel();
    MutexLock lock(mutex_);
    Release();
    while (!done_) changed_.Wait(mutex_);
  }

  void SendProgress(uint64_t bytes_done, uint64_t bytes_total) override {
    v1::JoinRequest request;
    request.mutable_progress()->set_phase("load");
    request.mutable_progress()->set_bytes_done(bytes_done);
    request.mutable_progress()->set_bytes_total(bytes_total);
    Send(std::move(request));
  }
  void SendLoaded(const LoadedFacts& facts) override {
    v1::JoinRequest request;
    request.mutable_loaded()->set_free_device_bytes(static_cast<uint64_t>(facts.free_bytes));
    request.mutable_loaded()->set_weights_digest(facts.weights_digest);
    Send(std::move(request));
  }
  void SendReady(int64_t step_us) override {
    v1::JoinRequest request;
    request.mutable_ready()->set_step_us(static_cast<uint64_t>(step_us));
    Send(std::move(request));
  }
  void SendHeartbeat(uint64_t step_begun, uint64_t step_done) override {
    v1::JoinRequest request;
    request.mutable_heartbeat()->set_step_begun(step_begun);
    request.mutable_heartbeat()->set_step_done(step_done);
    Send(std::move(request));
  }
  void SendFault(uint64_t step, const std::string& operation, const Status& status) override {
    v1::JoinRequest request;
    v1::Fault* fault = request.mutable_fault();
    fault->set_step(step);
    fault->set_operation(operation);
    fault->set_code(static_cast<uint32_t>(status.code()));
    fault->set_message(status.message());
    Send(std::move(request));
  }

  Result<std::optional<std::string>> ReceivePlan() override { return board_.AwaitPlan(); }

  Status SendDigest(uint64_t step, uint64_t digest) override {
    v1::JoinRequest request;
    request.mutable_step_done()->set_step(step);
    request.mutable_step_done()->set_digest(digest);
    Send(std::move(request));
    return Status::Ok();  // a break comes out of the next ReceivePlan
  }

  void Close(TimePoint until) override {
    MutexLock lock(mutex_);
    closing_ = true;
    if (held_) WriteNext();  // else the leader ended it, and the stream may be gone
    Release();
    while (!done_) {
      if (!changed_.WaitUntil(mutex_, until)) return;
    }
  }

 private:
  void Send(v1::JoinRequest request) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (closing_ || broken_) return;
    if (!queue_.Push(std::move(request))) {
      broken_ = true;
      context_.TryCancel();  // the leader does not read
      return;
    }
    WriteNext();
  }

  void WriteNext() REQUIRES(mutex_) {
    if (const v1::JoinRequest* request = queue_.Begin()) {
      StartWrite(request);
    } else if (closing_ && !queue_.writing() && !writes_done_) {
      writes_done_ = true;
      StartWritesDone();
    }
  }

  // The stream may only be written to while it is held.
  void Release() REQUIRES(mutex_) {
    if (std::exchange(held_, false)) RemoveHold();
    closing_ = true;
  }

  void OnReadDone(bool ok) override {
    if (!ok) {  // over; OnDone, which comes when nothing holds the stream, says why
      MutexLock lock(mutex_);
      return Release();
    }
    Handle();
    response_.Clear();
    StartRead(&response_);
  }

  void Handle() {
    switch (response_.frame_case()) {
      case v1::JoinResponse::kWelcome: {
        const v1::Welcome& welcome = response_.welcome();
        return board_.OnWelcome(
            {welcome.epoch(), welcome.group_id(), welcome.shared_memory_name()});
      }
      case v1::JoinResponse::kPool:
        return board_.OnPool({response_.pool().slots(), response_.pool().blocks()});
      case v1::JoinResponse::kPlan:
        return board_.OnPlan(std::move(*response_.mutable_plan()->mutable_encoded()));
      case v1::JoinResponse::kShutdown:
        return board_.OnShutdown();
      case v1::JoinResponse::kHeartbeat:
      case v1::JoinResponse::FRAME_NOT_SET:
        return board_.OnHeartbeat();
    }
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(mutex_);
    queue_.Done();
    if (ok) return WriteNext();
    broken_ = true;
    while (!queue_.empty()) queue_.Done();
    Release();
  }

  void OnDone(const grpc::Status& status) override {
    const Status why =
        status.ok() ? Unavailable("the leader ended the Join stream") : FromGrpc(status);
    board_.OnBroken(why);
    MutexLock lock(mutex_);
    done_ = true;
    changed_.NotifyAll();
  }

  LeaderBoard& board_;
  const std::unique_ptr<v1::Group::Stub> stub_;
  grpc::ClientContext context_;
  v1::JoinResponse response_;
  Mutex mutex_;
  CondVar changed_;
  FrameQueue<v1::JoinRequest> queue_ GUARDED_BY(mutex_);
  bool closing_ GUARDED_BY(mutex_) = false;
  bool writes_done_ GUARDED_BY(mutex_) = false;
  bool broken_ GUARDED_BY(mutex_) = false;
  bool held_ GUARDED_BY(mutex_) = true;
  bool done_ GUARDED_BY(mutex_) = false;
};

}  // namespace

Result<std::unique_ptr<GroupClient>> JoinGroup(const std::string& address, const RankHello& hello,
                                               LeaderBoard& board, Duration limit) {
  RETURN_ERROR_IF(CheckAddress(address));
  std::shared_ptr<grpc::Channel> channel = MakeChannel(address);
  const auto until = std::chrono::system_clock::now() +
                     std::chrono::duration_cast<std::chrono::milliseconds>(limit);
  if (!channel->WaitForConnected(until))
    return Error(Unavailable("no leader answers at " + address));
  return std::make_unique<GroupClientImpl>(std::move(channel), hello, board);
}

}  // namespace levin
