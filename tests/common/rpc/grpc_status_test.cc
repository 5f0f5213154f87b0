#include "common/rpc/grpc_status.h"

#include <gtest/gtest.h>

#include "common/base/error_table.h"

namespace levin {
namespace {

TEST(GrpcStatus, EveryRowOfTheTableComesBackAsItWent) {
  for (const ErrorRow& row : kErrorTable) {
    const Status sent = Status(row.code, std::string(row.reason), "what, which, expected")
                            .WithParam("messages[1].content")
                            .WithRetryAfterMs(61'250);
    const Status got = FromGrpc(ToGrpc(sent));
    EXPECT_EQ(got.code(), row.code);
    EXPECT_EQ(got.reason(), row.reason);
    EXPECT_EQ(got.message(), sent.message());
    EXPECT_EQ(got.param(), "messages[1].content");
    EXPECT_EQ(got.retry_after_ms(), 61'250);
  }
}

TEST(GrpcStatus, CodesAreEqualByValue) {
  for (int code = 1; code <= 16; ++code) {
    const grpc::Status status = ToGrpc(Status(static_cast<Code>(code), "m"));
    EXPECT_EQ(static_cast<int>(status.error_code()), code);
    EXPECT_TRUE(status.error_details().empty());
    EXPECT_EQ(static_cast<int>(FromGrpc(status).code()), code);
  }
  EXPECT_TRUE(ToGrpc(Status::Ok()).ok());
  EXPECT_TRUE(FromGrpc(grpc::Status::OK).ok());
}

TEST(GrpcStatus, DetailsAreGoogleRpcStatusInWireFormat) {
  const std::string details = ToGrpc(Status(Code::kUnavailable, "DRAINING", "bye")).error_details();
  const std::string info = std::string("\x0a\x08") + "DRAINING" + "\x12\x05" + "levin";
  const std::string type = "type.googleapis.com/google.rpc.ErrorInfo";
  const std::string any = "\x0a\x28" + type + "\x12\x11" + info;
  EXPECT_EQ(details, std::string("\x08\x0e\x12\x03") + "bye" + "\x1a\x3d" + any);
}

TEST(GrpcStatus, BrokenDetailsAreNoDetails) {
  const std::string whole =
      ToGrpc(Status(Code::kUnavailable, "DRAINING", "bye").WithRetryAfterMs(5)).error_details();
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    const Status got =
        FromGrpc(grpc::Status(grpc::StatusCode::UNAVAILABLE, "bye", whole.substr(0, cut)));
    EXPECT_EQ(got.code(), Code::kUnavailable);
    EXPECT_EQ(got.retry_after_ms(), 0);
  }
  EXPECT_EQ(
      FromGrpc(grpc::Status(grpc::StatusCode::ABORTED, "m", std::string(40, '\xff'))).reason(), "");
}

}  // namespace
}  // namespace levin
