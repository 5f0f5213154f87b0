// Frames of the Session between the tracker's form and protobuf's.
#pragma once

#include "common/rpc/engine_codec.h"
#include "router/dispatch/engine_client.h"
#include "router/dispatch/request_tracker.h"

namespace levin {

void Encode(SubmitFrame frame, v1::SessionRequest* request);
void Encode(const CancelFrame& frame, v1::SessionRequest* request);
void Encode(const FinishedSet& frame, v1::SessionRequest* request);

GroupInfo ToGroupInfo(const v1::HandshakeResponse& response);

}  // namespace levin
