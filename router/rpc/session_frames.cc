#include "router/rpc/session_frames.h"

#include <utility>

namespace levin {

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

}  // namespace levin
