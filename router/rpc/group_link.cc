#include "router/rpc/group_link.h"

#include <algorithm>
#include <utility>

#include "common/log/log.h"
#include "common/rpc/engine_codec.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/limits.h"
#include "common/rpc/transport.h"
#include "router/rpc/session_frames.h"

namespace levin {
namespace {

using std::chrono::milliseconds;

Status RefusedHandshake(Status status) {
  if (status.reason() == "MODEL_LOADING" || status.reason() == "DRAINING") return status;
  return NoGroup("no worker group is ready: " + status.message());
}

}  // namespace

Status NoGroup(std::string message) {
  return Status(Code::kUnavailable, "NO_GROUP", std::move(message)).WithRetryAfterMs(1'000);
}

GroupLink::GroupLink(GrpcEngineClientOptions options, const Clock& clock,
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

void GroupLink::Stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  {
    MutexLock lock(mutex_);
    if (handshake_ != nullptr) handshake_->TryCancel();
  }
  bell_->Ring();
  thread_.join();
}

void GroupLink::Run() {
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

bool GroupLink::Connect() {
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

void GroupLink::Serve() {
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

void GroupLink::Beat(TimePoint now) {
  if (now < next_beat_) return;
  beat_due_ = true;
  next_beat_ = now + options_.heartbeat;
}

void GroupLink::JudgePeer(TimePoint now) {
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
void GroupLink::Suspend(Status why) {
  if (group() == nullptr) return;
  Log(LogLevel::kWarning, "group_paused", {{"group", options_.address}, {"why", why.message()}});
  tracker_->Pause(std::move(why));
  SetReady(false);
}

// A clean half-close ends the lease at once, and with it what the group still holds for us.
void GroupLink::SayGoodbye() {
  tracker_->Shutdown(Status(Code::kUnavailable, "DRAINING", "the router is shutting down"));
  session_->HalfClose();
  WaitForClose(clock_.Now() + options_.goodbye_limit);
  session_->Cancel();
  WaitForClose(TimePoint::max());  // gRPC ends a cancelled call at once
}

void GroupLink::WaitForClose(TimePoint until) {
  while (!SessionClosed() && clock_.Now() < until) {
    bell_->Wait(std::min(until, clock_.Now() + std::chrono::seconds(1)));
  }
}

bool GroupLink::SessionClosed() const {
  MutexLock lock(mutex_);
  return closed_;
}

void GroupLink::Lose() {
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

void GroupLink::SetReady(bool ready) {
  {
    MutexLock lock(mutex_);
    if (std::exchange(ready_, ready) == ready) return;
  }
  if (on_change_) on_change_();
}

}  // namespace levin
