#include "worker/rpc/session_codec.h"

#include "common/rpc/engine_codec.h"

namespace levin {
namespace {

void Put(const AcceptedEvent& event, v1::SessionResponse* proto) {
  v1::Accepted* accepted = proto->mutable_accepted();
  accepted->set_ordinal(event.ordinal);
  accepted->set_attempt(event.attempt);
  accepted->set_admitted(event.admitted);
  accepted->set_queue_place(static_cast<uint64_t>(event.queue_place));
  accepted->set_reserved_blocks(static_cast<uint64_t>(event.reserved_blocks));
  accepted->set_cached_tokens(static_cast<uint64_t>(event.cached_tokens));
}

void Put(const TokensFrame& frame, v1::SessionResponse* proto) {
  v1::Tokens* tokens = proto->mutable_tokens();
  for (const TokensEvent& run : frame.runs) {
    // A rank is 1 or more exactly where logprobs were asked for.
    const bool with_logprobs = !run.tokens.empty() && run.tokens.front().rank > 0;
    ToProto(TokenRunView{run.ordinal, run.first_index, run.tokens}, with_logprobs,
            tokens->add_runs());
  }
}

void Put(const FinishedEvent& event, v1::SessionResponse* proto) {
  v1::Finished* finished = proto->mutable_finished();
  finished->set_ordinal(event.ordinal);
  finished->set_reason(ToProto(event.reason));
  finished->set_ids_hash(event.ids_hash);
  ToProto(event.usage, finished->mutable_usage());
}

void Put(const ErrorEvent& event, v1::SessionResponse* proto) {
  const Code code = event.status.code();
  const bool blame_group = code == Code::kUnavailable ||
                           (code == Code::kInternal && event.status.reason() != "NUMERIC_FAULT");
  v1::EngineError* error = proto->mutable_error();
  ToProto(event.status, event.ordinal, blame_group, error);
  error->set_need_blocks(event.need_blocks);
  error->set_free_blocks(event.free_blocks);
  error->set_total_blocks(event.total_blocks);
}

void Put(const FreedAckEvent& event, v1::SessionResponse* proto) {
  v1::FreedAck* freed = proto->mutable_freed_ack();
  ToProto(OrdinalSet{event.watermark, event.unfreed}, freed);
  freed->set_step(event.step);
}

void Put(const Capacity& capacity, v1::SessionResponse* proto) {
  ToProto(capacity, proto->mutable_capacity());
}

void Put(const HeartbeatFrame& frame, v1::SessionResponse* proto) {
  v1::LeaderHeartbeat* heartbeat = proto->mutable_heartbeat();
  heartbeat->set_unix_ms(frame.unix_ms);
  heartbeat->set_live(frame.live.size());
  heartbeat->set_live_digest(HashOrdinals(frame.live));
}

void Put(const EpochEndFrame& frame, v1::SessionResponse* proto) {
  v1::EpochEnd* end = proto->mutable_epoch_end();
  end->set_reason(frame.reason);
  end->set_rank(frame.rank);
  end->set_last_good_step(frame.last_good_step);
  end->set_message(frame.message);
}

}  // namespace

void ToProto(const OutFrame& frame, v1::SessionResponse* proto) {
  std::visit([proto](const auto& what) { Put(what, proto); }, frame);
}

FinishReason ReasonOf(v1::CancelReason reason) {
  switch (reason) {
    case v1::CANCEL_REASON_STOP_STRING:
      return FinishReason::kStop;
    case v1::CANCEL_REASON_DEADLINE:
      return FinishReason::kDeadline;
    default:
      return FinishReason::kCancelled;
  }
}

}  // namespace levin
