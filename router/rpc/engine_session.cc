#include "router/rpc/engine_session.h"

#include <utility>

#include "common/rpc/grpc_status.h"
#include "common/rpc/limits.h"

namespace levin {

std::shared_ptr<EngineSession> EngineSession::Start(v1::Engine::Stub& stub,
                                                    const std::string& token, Owner& owner) {
  std::shared_ptr<EngineSession> session(new EngineSession(owner));
  session->self_ = session;
  session->context_.AddMetadata(kSessionMetadataKey, token);
  stub.async()->Session(&session->context_, session.get());
  session->AddHold();
  session->StartRead(&session->response_);
  session->StartCall();
  session->Pump();
  return session;
}

void EngineSession::Pump() {
  bool half_close = false;
  {
    MutexLock lock(mutex_);
    if (writing_ || ended_) return;
    request_.Clear();
    if (!owner_.NextRequest(&request_)) {
      if (!half_close_) return;
      half_close = true;
      ended_ = true;
    }
    writing_ = true;
  }
  if (half_close) {
    StartWritesDone();
  } else {
    StartWrite(&request_);
  }
}

void EngineSession::HalfClose() {
  {
    MutexLock lock(mutex_);
    half_close_ = true;
  }
  Pump();
}

void EngineSession::OnWriteDone(bool ok) {
  Settle(true, !ok);
  Pump();
}

void EngineSession::OnWritesDoneDone(bool) { Settle(true, true); }

void EngineSession::OnReadDone(bool ok) {
  if (!ok) return Settle(false, true);
  if (error_.ok()) {
    error_ = owner_.OnResponse(response_);
    if (!error_.ok()) context_.TryCancel();
  }
  StartRead(&response_);
}

void EngineSession::OnDone(const grpc::Status& status) {
  const std::shared_ptr<EngineSession> self = std::move(self_);
  owner_.OnSessionClosed(error_.ok() ? FromGrpc(status) : error_);
}

// Other threads may start writes as long as the hold is there, so it goes when none is under way
// and none will be.
void EngineSession::Settle(bool write_ended, bool no_more_writes) {
  {
    MutexLock lock(mutex_);
    if (write_ended) writing_ = false;
    if (no_more_writes) ended_ = true;
    if (!ended_ || writing_ || released_) return;
    released_ = true;
  }
  RemoveHold();
}

}  // namespace levin
