#include "common/base/error_table.h"

#include <gtest/gtest.h>

#include <set>

namespace levin {
namespace {

TEST(ErrorTable, NamesEachReasonOnceInUpperSnake) {
  std::set<std::string_view> seen;
  for (const ErrorRow& row : kErrorTable) {
    EXPECT_TRUE(seen.insert(row.reason).second) << row.reason;
    EXPECT_EQ(row.reason.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), std::string_view::npos)
        << row.reason;
    EXPECT_LE(row.reason.size(), 63u) << row.reason;
  }
}

TEST(ErrorTable, ShownReasonsAnswerWithTheTwinOfTheirCode) {
  for (const ErrorRow& row : kErrorTable) {
    if (!row.internal) {
      EXPECT_EQ(row.http, HttpOf(row.code)) << row.reason;
    }
  }
}

TEST(ErrorTable, OnlyWhatMayGetBetterIsWorthARetry) {
  for (const ErrorRow& row : kErrorTable) {
    if (row.http == 400 || row.http == 404 || row.http == 409 || row.http == 501) {
      EXPECT_EQ(row.retry, RetryAdvice::kNever) << row.reason;
    }
    if (row.http == 429 || row.http == 503) {
      EXPECT_NE(row.retry, RetryAdvice::kNever) << row.reason;
    }
  }
}

TEST(ErrorTable, TheReasonDecidesOnlyWhereItBelongsToTheCode) {
  EXPECT_EQ(HttpOf(Status(Code::kFailedPrecondition, "TOKENIZER_MISMATCH", "x")), 503);
  EXPECT_EQ(HttpOf(Status(Code::kFailedPrecondition, "x")), 400);
  EXPECT_EQ(HttpOf(Status(Code::kInternal, "QUEUE_FULL", "x")), 500);
  EXPECT_EQ(HttpOf(Status(Code::kUnavailable, "SOMETHING_NEW", "x")), 503);
}

}  // namespace
}  // namespace levin
