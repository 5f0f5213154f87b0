#include <utility>
#include <variant>
#include <vector>

#include "common/base/error_table.h"
#include "common/rpc/engine_codec.h"
#include "router/rpc/group_link.h"
#include "router/rpc/session_frames.h"

namespace levin {
namespace {

// What a router and a leader settle between themselves is no business of a client.
Status ForClient(Status status) {
  const ErrorRow* row = FindError(status.reason());
  if (row == nullptr || !row->internal) return status;
  return Internal("the worker group refused a request of this router: " + status.reason());
}

}  // namespace

// --- what is sent

Status GroupLink::CheckFits(const Generation& generation) const {
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

bool GroupLink::NextRequest(v1::SessionRequest* request) {
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

Status GroupLink::OnResponse(const v1::SessionResponse& response) {
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

Status GroupLink::OnFrame(const v1::SessionResponse& response) {
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

Status GroupLink::OnTokens(const v1::Tokens& tokens) {
  std::vector<TokenRunIn> runs;
  runs.reserve(static_cast<size_t>(tokens.runs_size()));
  for (const v1::TokenRun& run : tokens.runs()) {
    ASSIGN_OR_RETURN_STATUS(std::vector<SampledToken> sampled, TokensFromProto(run));
    runs.push_back({run.ordinal(), static_cast<int64_t>(run.first_index()), std::move(sampled)});
  }
  return tracker_->OnTokens(std::move(runs));
}

void GroupLink::OnCapacity(const v1::Capacity& capacity) {
  bool changed = false;
  {
    MutexLock lock(mutex_);
    changed = capacity.draining() != capacity_.draining || capacity.suspect() != capacity_.suspect;
    capacity_ = FromProto(capacity, geometry_);
  }
  if (changed) bell_->Ring();
}

void GroupLink::OnSessionClosed(const Status& status) {
  const std::shared_ptr<WakeBell> bell = bell_;  // the client may be gone behind the lock
  {
    MutexLock lock(mutex_);
    close_status_ = status;
    closed_ = true;
  }
  bell->Ring();
}

}  // namespace levin
