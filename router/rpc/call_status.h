// What a client's call is told at its end, and who it is. Adapter: gRPC's context to our own words.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <cstdint>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"

namespace levin {

// Metadata of a call; "" when absent.
std::string MetadataOf(const grpc::CallbackServerContext& context, const std::string& name);

// Of x-request-id, cut to 128 characters, else 32 hex digits of our own.
std::string RequestIdOf(const grpc::CallbackServerContext& context);
std::string NewId();

// Time until the client's deadline, at least 1; 0: it set none.
int64_t TimeoutMsOf(const grpc::CallbackServerContext& context, const Clock& clock);

// The status with its details, and the trailers that go with it. Before Finish.
grpc::Status EndOfCall(grpc::CallbackServerContext& context, const Status& status,
                       const std::string& request_id);

}  // namespace levin
