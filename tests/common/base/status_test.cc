#include "common/base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace levin {
namespace {

TEST(StatusTest, IsOkUnlessItSaysOtherwise) {
  EXPECT_TRUE(Status().ok());
  EXPECT_TRUE(Status::Ok().ok());
  EXPECT_EQ(Status().retry_after_ms(), 0);
  EXPECT_FALSE(Internal("x").ok());
}

TEST(StatusTest, CarriesCodeReasonParamAndRetryTime) {
  const Status status = Status(Code::kResourceExhausted, "full")
                            .WithReason("QUEUE_FULL")
                            .WithParam("messages[1].role")
                            .WithRetryAfterMs(1500);
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_EQ(status.message(), "full");
  EXPECT_EQ(status.reason(), "QUEUE_FULL");
  EXPECT_EQ(status.param(), "messages[1].role");
  EXPECT_EQ(status.retry_after_ms(), 1500);
}

TEST(StatusTest, AnnotatesInFrontAndKeepsTheRest) {
  const Status status = NotFound("no file").Annotate("b.json").Annotate("model");
  EXPECT_EQ(status.message(), "model: b.json: no file");
  EXPECT_EQ(status.code(), Code::kNotFound);
}

TEST(StatusTest, CodesHaveGrpcsNumbers) {
  EXPECT_EQ(static_cast<int>(Code::kCancelled), 1);
  EXPECT_EQ(static_cast<int>(Code::kResourceExhausted), 8);
  EXPECT_EQ(static_cast<int>(Code::kUnavailable), 14);
  EXPECT_EQ(static_cast<int>(Code::kUnauthenticated), 16);
}

TEST(StatusTest, ShorthandsSetTheirReasons) {
  EXPECT_EQ(InvalidArgument("x").reason(), "INVALID_FIELD");
  EXPECT_EQ(Unimplemented("x").reason(), "UNSUPPORTED");
  EXPECT_EQ(Internal("x").reason(), "INTERNAL");
}

Status FailIf(bool fail) { return fail ? DataLoss("cut") : Status::Ok(); }

Result<std::unique_ptr<int>> Make(int value) {
  if (value < 0) return Error(InvalidArgument("negative"));
  return std::make_unique<int>(value);
}

Status Steps(bool fail, int& reached) {
  reached = 1;
  RETURN_IF_ERROR(FailIf(fail));
  reached = 2;
  ASSIGN_OR_RETURN_STATUS(const std::unique_ptr<int> value, Make(fail ? -1 : 3));
  reached = *value;
  return Status::Ok();
}

Result<int> Sum(int a, int b, bool fail = false) {
  RETURN_ERROR_IF(FailIf(fail));
  ASSIGN_OR_RETURN(const std::unique_ptr<int> first, Make(a));
  ASSIGN_OR_RETURN(const std::unique_ptr<int> second, Make(b));
  return *first + *second;
}

TEST(ResultTest, MacrosGoOnWithTheValue) {
  int reached = 0;
  EXPECT_TRUE(Steps(false, reached).ok());
  EXPECT_EQ(reached, 3);
  EXPECT_EQ(*Sum(2, 3), 5);
}

TEST(ResultTest, MacrosReturnTheFirstErrorUnchanged) {
  int reached = 0;
  EXPECT_EQ(Steps(true, reached).message(), "cut");
  EXPECT_EQ(reached, 1);
  EXPECT_EQ(Sum(2, -1).error().message(), "negative");
  EXPECT_EQ(Sum(2, 3, true).error().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace levin
