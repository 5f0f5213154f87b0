// Frames of the Session between worker/session's words and engine.proto. Pure.
#pragma once

#include "levin/v1/engine.pb.h"
#include "worker/session/out_frame.h"

namespace levin {

// Sets the frame; seq, ack, epoch and step are the stream's.
void ToProto(const OutFrame& frame, v1::SessionResponse* proto);

FinishReason ReasonOf(v1::CancelReason reason);

}  // namespace levin
