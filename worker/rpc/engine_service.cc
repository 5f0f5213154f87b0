#include "worker/rpc/engine_service.h"

#include <atomic>
#include <string>
#include <utility>

#include "common/base/mutex.h"
#include "common/rpc/engine_codec.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/limits.h"
#include "levin/v1/engine.grpc.pb.h"
#include "worker/rpc/session_codec.h"

namespace levin {
namespace {

using SessionReactorBase = grpc::ServerBidiReactor<v1::SessionRequest, v1::SessionResponse>;

// A stream that is refused at once.
class RefusedSession final : public SessionReactorBase {
 public:
  explicit RefusedSession(const Status& status) { Finish(ToGrpc(status)); }
  void OnDone() override { delete this; }
};

// One opened Session. Deletes itself when gRPC is done with it; the Session object lives on with
// whoever still holds it, its door closed.
class SessionReactor final : public SessionReactorBase, public SessionDoor {
 public:
  SessionReactor(SessionHub& hub, grpc::CallbackServerContext& context)
      : hub_(hub), context_(context) {}

  // To be called once, after construction.
  void Begin(const std::string& token) {
    Result<std::shared_ptr<Session>> session = hub_.Open(token, *this);
    if (!session) return SessionReactorBase::Finish(ToGrpc(session.error()));
    session_ = *std::move(session);
    StartRead(&request_);
  }

  // SessionDoor, under the Session's lock.
  void StartWrite(const OutFrame& frame) override {
    response_.Clear();
    response_.set_seq(++sent_);
    response_.set_ack(received_.load());
    response_.set_epoch(hub_.epoch());
    ToProto(frame, &response_);
    if (const auto* capacity = std::get_if<Capacity>(&frame))
      step_ = static_cast<uint64_t>(capacity->step);
    response_.set_step(step_);
    SessionReactorBase::StartWrite(&response_);
  }
  void Finish(const Status& status) override { SessionReactorBase::Finish(ToGrpc(status)); }
  void Cancel() override { context_.TryCancel(); }

  // ServerBidiReactor.
  void OnReadDone(bool ok) override {
    if (!ok) {  // a half-close, or broken: OnDone will know
      session_->Close(Status::Ok());
      return;
    }
    if (request_.seq() != received_.load() + 1) {
      session_->Close(InvalidArgument("Session frame " + std::to_string(request_.seq()) +
                                      " came after frame " + std::to_string(received_.load())));
      return;
    }
    received_.store(request_.seq());
    Handle();
    request_.Clear();
    StartRead(&request_);
  }
  void OnWriteDone(bool ok) override { session_->OnWriteDone(ok); }
  void OnDone() override {
    if (session_ != nullptr) hub_.OnEnd(session_, !context_.IsCancelled());
    delete this;
  }

 private:
  void Handle() {
    switch (request_.frame_case()) {
      case v1::SessionRequest::kSubmit:
        return HandleSubmit(request_.submit());
      case v1::SessionRequest::kCancel: {
        const v1::Cancel& cancel = request_.cancel();
        return hub_.OnCancel(*session_,
                             {cancel.ordinal(), cancel.attempt(), ReasonOf(cancel.reason())});
      }
      case v1::SessionRequest::kFinishedSet: {
        Result<OrdinalSet> set = FromProto(request_.finished_set());
        if (!set) return session_->Close(std::move(set).error());
        return hub_.OnFinishedSet(*session_, {set->watermark, std::move(set->live)});
      }
      case v1::SessionRequest::kHeartbeat:
        return hub_.OnHeartbeat(*session_);
      case v1::SessionRequest::FRAME_NOT_SET:
        return hub_.OnHeartbeat(*session_);  // of a later minor
    }
  }

  void HandleSubmit(const v1::Submit& submit) {
    Result<Generation> generation = FromProto(submit);
    if (!generation) {
      return hub_.OnBadSubmit(*session_, submit.ordinal(), submit.attempt(),
                              std::move(generation).error());
    }
    hub_.OnSubmit(*session_, *std::move(generation), submit.remaining_ms());
  }

  SessionHub& hub_;
  grpc::CallbackServerContext& context_;
  std::shared_ptr<Session> session_;
  v1::SessionRequest request_;
  v1::SessionResponse response_;
  std::atomic<uint64_t> received_{0};  // highest seq; read by the writing side
  uint64_t sent_ = 0;
  uint64_t step_ = 0;
};

class EngineServiceImpl final : public EngineService, public v1::Engine::CallbackService {
 public:
  explicit EngineServiceImpl(SessionHub& hub) : hub_(hub) {}

  grpc::Service& service() override { return *this; }

  void SetFacts(EngineFacts facts) override {
    MutexLock lock(mutex_);
    facts_ = std::move(facts);
  }

 private:
  grpc::ServerUnaryReactor* Handshake(grpc::CallbackServerContext* context,
                                      const v1::HandshakeRequest* request,
                                      v1::HandshakeResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const Result<std::string> token =
        hub_.Handshake({.protocol_major = request->protocol_major(),
                        .router_id = request->router_id(),
                        .incarnation = request->router_incarnation(),
                        .highest_epoch_seen = request->highest_epoch_seen(),
                        .tokenizer_hash = request->tokenizer_hash()});
    if (!token) {
      reactor->Finish(ToGrpc(token.error()));
      return reactor;
    }
    response->set_session_token(*token);
    Describe(response);
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  void Describe(v1::HandshakeResponse* response) {
    response->set_protocol_minor(kProtocolMinor);
    response->set_epoch(hub_.epoch());
    response->set_lease_seconds(kLeaseMs / 1000);
    response->set_prompt_inline_ids_max(kPromptInlineIdsMax);
    ToProto(hub_.capacity(), response->mutable_capacity());
    response->mutable_capacity()->set_submit_window(kSubmitWindow);
    MutexLock lock(mutex_);
    response->set_group_id(facts_.group_id);
    response->set_model_digest(facts_.model_digest);
    response->set_tokenizer_hash(facts_.tokenizer_hash);
    response->set_max_model_len(facts_.max_model_len);
    response->set_max_new_tokens(facts_.max_new_tokens);
    response->set_max_num_seqs(static_cast<uint32_t>(facts_.max_num_seqs));
    v1::Geometry* geometry = response->mutable_geometry();
    geometry->set_lightning_layers(static_cast<uint32_t>(facts_.lightning_layers));
    geometry->set_softmax_layers(static_cast<uint32_t>(facts_.softmax_layers));
    geometry->set_heads(static_cast<uint32_t>(facts_.heads));
    geometry->set_block_tokens(static_cast<uint32_t>(facts_.block_tokens));
    geometry->set_bytes_per_block(static_cast<uint64_t>(facts_.bytes_per_block));
    geometry->set_bytes_per_slot(static_cast<uint64_t>(facts_.bytes_per_slot));
    geometry->set_ranks(static_cast<uint32_t>(facts_.ranks));
    geometry->set_vocab_size(static_cast<uint32_t>(facts_.vocab_size));
  }

  SessionReactorBase* Session(grpc::CallbackServerContext* context) override {
    const auto& metadata = context->client_metadata();
    const auto found = metadata.find(kSessionMetadataKey);
    if (found == metadata.end()) {
      return new RefusedSession(Status(Code::kFailedPrecondition, "SESSION_ENDED",
                                       "the call has no levin-session metadata"));
    }
    auto* reactor = new SessionReactor(hub_, *context);
    reactor->Begin(std::string(found->second.data(), found->second.size()));
    return reactor;
  }

  // What this version does not build says so with the reason that routers look for.
  static Status NotBuilt(const char* method) {
    return Unimplemented(std::string(method) + " is not built yet");
  }

  class RefusedUpload final : public grpc::ServerReadReactor<v1::PutPromptRequest> {
   public:
    RefusedUpload() { Finish(ToGrpc(NotBuilt("PutPrompt"))); }
    void OnDone() override { delete this; }
  };
  grpc::ServerReadReactor<v1::PutPromptRequest>* PutPrompt(grpc::CallbackServerContext*,
                                                           v1::PutPromptResponse*) override {
    return new RefusedUpload();
  }
  static grpc::ServerUnaryReactor* Refuse(grpc::CallbackServerContext* context,
                                          const char* method) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(ToGrpc(NotBuilt(method)));
    return reactor;
  }
  grpc::ServerUnaryReactor* GetCapacity(grpc::CallbackServerContext* context,
                                        const v1::GetCapacityRequest*,
                                        v1::GetCapacityResponse*) override {
    return Refuse(context, "GetCapacity");
  }
  grpc::ServerUnaryReactor* Abort(grpc::CallbackServerContext* context,
                                  const v1::EngineAbortRequest*,
                                  v1::EngineAbortResponse*) override {
    return Refuse(context, "Abort");
  }
  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* context, const v1::DrainRequest*,
                                  v1::DrainResponse*) override {
    return Refuse(context, "Drain");
  }

  SessionHub& hub_;
  Mutex mutex_;
  EngineFacts facts_ GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<EngineService> MakeEngineService(SessionHub& hub) {
  return std::make_unique<EngineServiceImpl>(hub);
}

}  // namespace levin
