// One Session stream to a leader: one write under way, always reading. Thin: what is written and
// what a frame means is its owner's. Any thread may call any method.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <memory>
#include <string>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "levin/v1/engine.grpc.pb.h"

namespace levin {

class EngineSession final
    : public grpc::ClientBidiReactor<v1::SessionRequest, v1::SessionResponse> {
 public:
  // Must live until OnSessionClosed has returned.
  class Owner {
   public:
    virtual ~Owner() = default;
    // Fills in the next frame to send; false: nothing to send. Called under the session's lock.
    virtual bool NextRequest(v1::SessionRequest* request) = 0;
    // Each frame in order, from a gRPC thread. An error cancels the stream.
    virtual Status OnResponse(const v1::SessionResponse& response) = 0;
    // The last call, once. `status`: why the stream ended; OK: the leader closed it in order.
    virtual void OnSessionClosed(const Status& status) = 0;
  };

  static std::shared_ptr<EngineSession> Start(v1::Engine::Stub& stub, const std::string& token,
                                              Owner& owner);

  void Pump() EXCLUDES(mutex_);       // something may be there to send
  void HalfClose() EXCLUDES(mutex_);  // nothing more will be sent
  void Cancel() { context_.TryCancel(); }

  // gRPC's side
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnWritesDoneDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  explicit EngineSession(Owner& owner) : owner_(owner) {}

  void Settle(bool write_ended, bool no_more_writes) EXCLUDES(mutex_);

  Owner& owner_;
  grpc::ClientContext context_;
  v1::SessionRequest request_;           // in the write under way
  v1::SessionResponse response_;         // of the reading thread
  Status error_;                         // of OnResponse; reading thread, then OnDone
  std::shared_ptr<EngineSession> self_;  // gRPC's reference, until OnDone

  Mutex mutex_;
  bool writing_ GUARDED_BY(mutex_) = false;
  bool half_close_ GUARDED_BY(mutex_) = false;
  bool ended_ GUARDED_BY(mutex_) = false;     // no further write may start
  bool released_ GUARDED_BY(mutex_) = false;  // the hold that lets other threads start writes
};

}  // namespace levin
