#include "router/rpc/call_status.h"

#include <algorithm>
#include <cstdio>
#include <random>

#include "common/rpc/grpc_status.h"
#include "router/rpc/inference_codec.h"

namespace levin {
namespace {

constexpr size_t kRequestIdMax = 128;
constexpr int64_t kFarMs = int64_t{1000} * 60 * 60 * 24 * 365;

}  // namespace

std::string MetadataOf(const grpc::CallbackServerContext& context, const std::string& name) {
  const auto found = context.client_metadata().find(name);
  if (found == context.client_metadata().end()) return {};
  return {found->second.data(), found->second.size()};
}

std::string RequestIdOf(const grpc::CallbackServerContext& context) {
  std::string id = MetadataOf(context, "x-request-id");
  if (id.empty()) return NewId();
  if (id.size() > kRequestIdMax) id.resize(kRequestIdMax);
  return id;
}

std::string NewId() {
  std::random_device source;
  std::string id;
  for (int i = 0; i < 4; ++i) {
    char text[9];
    std::snprintf(text, sizeof text, "%08x", static_cast<unsigned>(source()));
    id += text;
  }
  return id;
}

int64_t TimeoutMsOf(const grpc::CallbackServerContext& context, const Clock& clock) {
  const auto deadline =
      std::chrono::duration_cast<std::chrono::milliseconds>(context.deadline().time_since_epoch());
  const int64_t left_ms = deadline.count() - clock.UnixMs();
  if (left_ms > kFarMs) return 0;
  return std::max<int64_t>(left_ms, 1);
}

grpc::Status EndOfCall(grpc::CallbackServerContext& context, const Status& status,
                       const std::string& request_id) {
  if (status.ok()) return grpc::Status::OK;
  if (status.code() == Code::kResourceExhausted && status.retry_after_ms() > 0) {
    context.AddTrailingMetadata("grpc-retry-pushback-ms", std::to_string(status.retry_after_ms()));
  }
  context.AddTrailingMetadata("x-request-id", request_id);
  Status mapped = status;
  return ToGrpc(std::move(mapped).WithParam(FieldPath(status.param())), request_id);
}

}  // namespace levin
