#include "router/rpc/grpc_engine_client.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "common/base/error_table.h"
#include "common/log/log.h"
#include "common/rpc/engine_codec.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/limits.h"
#include "common/rpc/transport.h"
#include "router/dispatch/peer_health.h"
#include "router/dispatch/wake_bell.h"
#include "router/rpc/engine_session.h"

namespace levin {
namespace {

using std::chrono::milliseconds;

Status NoGroup(std::string message) {
  return Status(Code::kUnavailable, "NO_GROUP", std::move(message)).WithRetryAfterMs(1'000);
}

Status RefusedHandshake(Status status) {
  if (status.reason() == "MODEL_LOADING" || status.reason() == "DRAINING") return status;
  return NoGroup("no worker group is ready: " + status.message());
}

// What a router and a leader settle between themselves is no business of a client.
Status ForClient(Status status) {
  const ErrorRow* row = FindError(status.reason());
  if (row == nullptr || !row->internal) return status;
  return Internal("the worker group refused a request of this router: " + status.reason());
}

GroupInfo ToGroupInfo(const v1::HandshakeResponse& response) {
  GroupInfo info;
  info.group_id = response.group_id();
  info.epoch = response.epoch();
  info.max_model_len = response.max_model_len();
  info.max_new_tokens = response.max_new_tokens();
  info.block_tokens = response.geometry().block_tokens();
  info.max_num_seqs = static_cast<int32_t>(response.max_num_seqs());
  info.vocab_size = static_cast<int32_t>(response.geometry().vocab_size());
  info.ranks = static_cast<int32_t>(response.geometry().ranks());
  info.model_digest = response.model_digest();
  return info;
}

void Encode(SubmitFrame frame, v1::SessionRequest* request) {
  v1::Submit* submit = request->mutable_submit();
  ToProto(frame.generation, submit);
  submit->set_remaining_ms(frame.remaining_ms);
}

void Encode(const CancelFrame& frame, v1::SessionRequest* request) {
  v1::Cancel* cancel = request->mutable_cancel();
  cancel->set_ordinal(frame.ordinal);
  cancel->set_attempt(frame.attempt);
  switch (frame.reason) {
    case CancelReason::kClientGone:
      return cancel->set_reason(v1::CANCEL_REASON_CLIENT_GONE);
    case CancelReason::kStopString:
      return cancel->set_reason(v1::CANCEL_REASON_STOP_STRING);
    case CancelReason::kDeadline:
      return cancel->set_reason(v1::CANCEL_REASON_DEADLINE);
    case CancelReason::kAbort:
      return cancel->set_reason(v1::CANCEL_REASON_ABORT);
    case CancelReason::kShutdown:
      return cancel->set_reason(v1::CANCEL_REASON_SHUTDOWN);
  }
}

void Encode(const FinishedSet& frame, v1::SessionRequest* request) {
  ToProto(OrdinalSet{frame.watermark, frame.live}, request->mutable_finished_set());
}

}  // namespace

// All of the client's state. One thread runs Connect and Serve; the session's frames come in on
// gRPC's threads.
class GrpcEngineClient::Link final : public EngineSession::Owner {
 public:
  Link(GrpcEngineClientOptions options, const Clock& clock, std::function<void()> on_change);

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

// --- life

GrpcEngineClient::Link::Link(GrpcEngineClientOptions options, const Clock& clock,
                             std::function<void()> on_change)
    : options_(std::move(options)),
      clock_(clock),
      on_change_(std::move(on_change)),
      tracker_(RequestTracker::Create({.queued_max = options_.max_queued_requests,
                                       .leader_queued_max = kSubmitWindow,
                                       .finished_pace = milliseconds(kFinishedSetEveryMs),
                                       .finished_repeat = options_.heartbeat,
                                       .random_seed = options_.router_incarnation},
                                      clock, [bell = bell_] { bell->Ring(); })),
      stub_(v1::Engine::NewStub(MakeChannel(options_.address))) {
  thread_ = std::thread([this] { Run(); });
}

void GrpcEngineClient::Link::Stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  {
    MutexLock lock(mutex_);
    if (handshake_ != nullptr) handshake_->TryCancel();
  }
  bell_->Ring();
  thread_.join();
}

void GrpcEngineClient::Link::Run() {
  Duration backoff = options_.reconnect_min;
  while (!stopping_) {
    if (Connect()) {
      backoff = options_.reconnect_min;
      Serve();
      continue;
    }
    tracker_->Close(refusal_, refusal_.message());
    const TimePoint until = clock_.Now() + backoff;
    while (!stopping_ && clock_.Now() < until) bell_->Wait(until);
    backoff = std::min(2 * backoff, options_.reconnect_max);
  }
  tracker_->Shutdown(Status(Code::kUnavailable, "DRAINING", "the router is shutting down"));
}

bool GrpcEngineClient::Link::Connect() {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::duration_cast<milliseconds>(options_.handshake_limit));
  {
    MutexLock lock(mutex_);
    if (stopping_) return false;
    handshake_ = &context;
  }
  v1::HandshakeRequest request;
  request.set_protocol_major(kProtocolMajor);
  request.set_protocol_minor(kProtocolMinor);
  request.set_router_id(options_.router_id);
  request.set_router_incarnation(options_.router_incarnation);
  request.set_highest_epoch_seen(highest_epoch_);
  request.set_tokenizer_hash(options_.tokenizer_hash);
  request.set_template_name(options_.template_name);
  request.set_unix_ms(clock_.UnixMs());
  v1::HandshakeResponse response;
  const grpc::Status status = stub_->Handshake(&context, request, &response);
  MutexLock lock(mutex_);
  handshake_ = nullptr;
  if (!status.ok()) {
    refusal_ = RefusedHandshake(FromGrpc(status));
    Log(LogLevel::kDebug, "group_refused",
        {{"group", options_.address}, {"why", status.error_message()}});
    return false;
  }
  if (response.epoch() < highest_epoch_) {
    refusal_ = NoGroup("the worker group is of epoch " + std::to_string(response.epoch()) +
                       ", epoch " + std::to_string(highest_epoch_) + " was seen before");
    return false;
  }
  highest_epoch_ = response.epoch();
  info_ = std::make_shared<const GroupInfo>(ToGroupInfo(response));
  geometry_ = response.geometry();
  prompt_ids_max_ = response.prompt_inline_ids_max();
  capacity_ = FromProto(response.capacity(), geometry_);
  closed_ = false;
  epoch_end_.clear();
  epoch_end_reason_.clear();
  received_seq_ = 0;
  sent_seq_ = 0;
  session_token_ = response.session_token();
  Log(LogLevel::kInfo, "group_connected",
      {{"group", options_.address},
       {"epoch", info_->epoch},
       {"ranks", info_->ranks},
       {"max_model_len", info_->max_model_len}});
  return true;
}

void GrpcEngineClient::Link::Serve() {
  const TimePoint start = clock_.Now();
  heard_ = start.time_since_epoch().count();
  health_.emplace(options_.suspect, options_.lost, options_.heartbeat, start);
  next_beat_ = start;
  session_ = EngineSession::Start(*stub_, session_token_, *this);
  tracker_->Open();
  SetReady(true);
  while (!stopping_ && !SessionClosed()) {
    const TimePoint now = clock_.Now();
    Beat(now);
    JudgePeer(now);
    const TimePoint due = tracker_->Tick();
    tracker_->DeliverPending();
    session_->Pump();
    // What is due and not sent stands behind a write, whose end sends it.
    TimePoint next = std::min(next_beat_, health_->NextChange());
    if (due > now) next = std::min(next, due);
    bell_->Wait(next);
  }
  if (stopping_) SayGoodbye();
  Lose();
}

void GrpcEngineClient::Link::Beat(TimePoint now) {
  if (now < next_beat_) return;
  beat_due_ = true;
  next_beat_ = now + options_.heartbeat;
}

void GrpcEngineClient::Link::JudgePeer(TimePoint now) {
  health_->Heard(TimePoint(Duration(heard_.load())));
  switch (health_->Judge(now)) {
    case PeerHealth::State::kGood: {
      const Capacity said = capacity();
      if (said.draining) {
        return Suspend(Status(Code::kUnavailable, "DRAINING", "the worker group is draining"));
      }
      if (said.suspect) {
        return Suspend(NoGroup("a rank of the worker group does not answer"));
      }
      if (group() != nullptr) return;
      tracker_->Resume();
      return SetReady(true);
    }
    case PeerHealth::State::kSuspect:
      return Suspend(NoGroup("the worker group does not answer"));
    case PeerHealth::State::kLost: {
      {
        MutexLock lock(mutex_);
        if (epoch_end_.empty()) epoch_end_ = "it did not answer for too long";
      }
      session_->Cancel();
      return WaitForClose(TimePoint::max());
    }
  }
}

// No new work; what the group has stays with it.
void GrpcEngineClient::Link::Suspend(Status why) {
  if (group() == nullptr) return;
  Log(LogLevel::kWarning, "group_paused", {{"group", options_.address}, {"why", why.message()}});
  tracker_->Pause(std::move(why));
  SetReady(false);
}

// A clean half-close ends the lease at once, and with it what the group still holds for us.
void GrpcEngineClient::Link::SayGoodbye() {
  tracker_->Shutdown(Status(Code::kUnavailable, "DRAINING", "the router is shutting down"));
  session_->HalfClose();
  WaitForClose(clock_.Now() + options_.goodbye_limit);
  session_->Cancel();
  WaitForClose(TimePoint::max());  // gRPC ends a cancelled call at once
}

void GrpcEngineClient::Link::WaitForClose(TimePoint until) {
  while (!SessionClosed() && clock_.Now() < until) {
    bell_->Wait(std::min(until, clock_.Now() + std::chrono::seconds(1)));
  }
}

bool GrpcEngineClient::Link::SessionClosed() const {
  MutexLock lock(mutex_);
  return closed_;
}

void GrpcEngineClient::Link::Lose() {
  std::string what, reason;
  {
    MutexLock lock(mutex_);
    what = !epoch_end_.empty()  ? epoch_end_
           : close_status_.ok() ? "it closed the connection"
                                : close_status_.message();
    reason = epoch_end_reason_;
    capacity_ = {};
  }
  SetReady(false);
  if (!stopping_) {
    Log(LogLevel::kWarning, "group_lost",
        {{"group", options_.address}, {"why", what}, {"live", tracker_->live_ordinals().size()}});
    if (options_.on_epoch_end) options_.on_epoch_end(reason);
  }
  session_ = nullptr;
  tracker_->Close(NoGroup("no worker group is ready: the last one ended (" + what + ")"), what);
}

void GrpcEngineClient::Link::SetReady(bool ready) {
  {
    MutexLock lock(mutex_);
    if (std::exchange(ready_, ready) == ready) return;
  }
  if (on_change_) on_change_();
}

// --- what is sent

Status GrpcEngineClient::Link::CheckFits(const Generation& generation) const {
  MutexLock lock(mutex_);
  if (!ready_) return Status::Ok();  // the tracker says why
  const auto prompt = static_cast<int64_t>(generation.prompt.size());
  const auto too_long = [](std::string message) {
    return Status(Code::kInvalidArgument, "CONTEXT_LENGTH_EXCEEDED", std::move(message))
        .WithParam("prompt");
  };
  if (prompt == 0) return InvalidArgument("the prompt has no tokens").WithParam("prompt");
  if (prompt + generation.max_new_tokens > info_->max_model_len) {
    return too_long("This model's maximum context length is " +
                    std::to_string(info_->max_model_len) + " tokens, but " +
                    std::to_string(prompt) + " in the prompt and " +
                    std::to_string(generation.max_new_tokens) + " to generate were asked");
  }
  if (prompt_ids_max_ > 0 && prompt > prompt_ids_max_) {
    return too_long("This server takes prompts of at most " + std::to_string(prompt_ids_max_) +
                    " tokens, this one has " + std::to_string(prompt));
  }
  return Status::Ok();
}

bool GrpcEngineClient::Link::NextRequest(v1::SessionRequest* request) {
  if (beat_due_.exchange(false)) {
    const std::vector<uint64_t> live = tracker_->live_ordinals();
    v1::RouterHeartbeat* beat = request->mutable_heartbeat();
    beat->set_unix_ms(clock_.UnixMs());
    beat->set_live(live.size());
    beat->set_live_digest(HashOrdinals(live));
  } else if (std::optional<OutgoingFrame> frame = tracker_->NextFrame()) {
    std::visit([&](auto& what) { Encode(std::move(what), request); }, *frame);
  } else {
    return false;
  }
  request->set_seq(++sent_seq_);
  request->set_ack(received_seq_);
  return true;
}

// --- what comes back

Status GrpcEngineClient::Link::OnResponse(const v1::SessionResponse& response) {
  const TimePoint now = clock_.Now();
  heard_ = now.time_since_epoch().count();
  if (response.seq() != received_seq_ + 1) {
    return Internal("frame " + std::to_string(response.seq()) + " of the leader came, expected " +
                    std::to_string(received_seq_ + 1));
  }
  received_seq_ = response.seq();
  {
    MutexLock lock(mutex_);
    if (response.epoch() != info_->epoch) return Status::Ok();  // fenced: of another life
    if (!ready_) bell_->Ring();
  }
  return OnFrame(response);
}

Status GrpcEngineClient::Link::OnFrame(const v1::SessionResponse& response) {
  switch (response.frame_case()) {
    case v1::SessionResponse::kAccepted: {
      const v1::Accepted& accepted = response.accepted();
      tracker_->OnAccepted(accepted.ordinal(), accepted.admitted(),
                           static_cast<int64_t>(accepted.cached_tokens()));
      return Status::Ok();
    }
    case v1::SessionResponse::kTokens:
      return OnTokens(response.tokens());
    case v1::SessionResponse::kFinished: {
      const v1::Finished& finished = response.finished();
      return tracker_->OnFinished(finished.ordinal(), FromProto(finished.reason()),
                                  FromProto(finished.usage()), finished.ids_hash());
    }
    case v1::SessionResponse::kFreedAck: {
      ASSIGN_OR_RETURN_STATUS(const OrdinalSet freed, FromProto(response.freed_ack()));
      tracker_->OnFreed(freed.watermark, freed.live);
      return Status::Ok();
    }
    case v1::SessionResponse::kError: {
      Status status = FromProto(response.error());
      if (status.ok()) return Internal("the leader sent an error without a code");
      if (response.error().ordinal() == 0) return status;
      tracker_->OnError(response.error().ordinal(), ForClient(std::move(status)));
      return Status::Ok();
    }
    case v1::SessionResponse::kCapacity:
      OnCapacity(response.capacity());
      return Status::Ok();
    case v1::SessionResponse::kEpochEnd: {
      const v1::EpochEnd& end = response.epoch_end();
      std::string what = end.reason();
      if (end.rank() >= 0) what += ", rank " + std::to_string(end.rank());
      if (!end.message().empty()) what += ": " + end.message();
      {
        MutexLock lock(mutex_);
        epoch_end_ = std::move(what);
        epoch_end_reason_ = end.reason();
      }
      return Unavailable("the group ended its epoch");
    }
    case v1::SessionResponse::kHeartbeat:
    case v1::SessionResponse::FRAME_NOT_SET:
      return Status::Ok();
  }
  return Status::Ok();
}

Status GrpcEngineClient::Link::OnTokens(const v1::Tokens& tokens) {
  std::vector<TokenRunIn> runs;
  runs.reserve(static_cast<size_t>(tokens.runs_size()));
  for (const v1::TokenRun& run : tokens.runs()) {
    ASSIGN_OR_RETURN_STATUS(std::vector<SampledToken> sampled, TokensFromProto(run));
    runs.push_back({run.ordinal(), static_cast<int64_t>(run.first_index()), std::move(sampled)});
  }
  return tracker_->OnTokens(std::move(runs));
}

void GrpcEngineClient::Link::OnCapacity(const v1::Capacity& capacity) {
  bool changed = false;
  {
    MutexLock lock(mutex_);
    changed = capacity.draining() != capacity_.draining || capacity.suspect() != capacity_.suspect;
    capacity_ = FromProto(capacity, geometry_);
  }
  if (changed) bell_->Ring();
}

void GrpcEngineClient::Link::OnSessionClosed(const Status& status) {
  const std::shared_ptr<WakeBell> bell = bell_;  // the client may be gone behind the lock
  {
    MutexLock lock(mutex_);
    close_status_ = status;
    closed_ = true;
  }
  bell->Ring();
}

// --- the door

GrpcEngineClient::GrpcEngineClient(GrpcEngineClientOptions options, const Clock& clock,
                                   std::function<void()> on_change)
    : link_(std::make_unique<Link>(std::move(options), clock, std::move(on_change))) {}

GrpcEngineClient::~GrpcEngineClient() { Stop(); }

Result<std::unique_ptr<Call>> GrpcEngineClient::Submit(Generation generation,
                                                       std::unique_ptr<TokenSink> sink) {
  RETURN_ERROR_IF(link_->CheckFits(generation));
  return link_->tracker().Submit(std::move(generation), std::move(sink));
}

Capacity GrpcEngineClient::capacity() const { return link_->capacity(); }
std::shared_ptr<const GroupInfo> GrpcEngineClient::group() const { return link_->group(); }
const RequestTracker& GrpcEngineClient::tracker() const { return link_->tracker(); }
void GrpcEngineClient::Stop() { link_->Stop(); }

}  // namespace levin
