// Status <-> grpc::Status. Codes are equal by value; reason, param and retry time travel as
// google.rpc.Status in grpc-status-details-bin (ErrorInfo, BadRequest, RetryInfo: api.md 12.4).
#pragma once

#include <grpcpp/support/status.h>

#include <string_view>

#include "common/base/status.h"

namespace levin {

grpc::Status ToGrpc(const Status& status);
// The same for a client, with its request's id (RequestInfo) and always with a reason.
grpc::Status ToGrpc(const Status& status, std::string_view request_id);

// Details that are missing or broken leave reason, param and retry time empty.
Status FromGrpc(const grpc::Status& status);

}  // namespace levin
