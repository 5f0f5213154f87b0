#include "common/base/check.h"

#include <gtest/gtest.h>

#include <string>

#include "common/base/clock.h"
#include "common/base/types.h"

namespace levin {
namespace {

TEST(CheckTest, LetsWhatIsTruePass) {
  CHECK(true);
  CHECK(1 < 2, "with", "values");
  CHECK_EQ(2 + 2, 4);
  CHECK_LT(1, 2);
  CHECK_LE(2, 2);
}

TEST(CheckDeathTest, NamesThePlaceTheConditionAndTheValues) {
  const int rows = 3;
  EXPECT_DEATH(CHECK(rows == 4, "rows", rows, std::string("of 4")),
               "CHECK failed at .*check_test.cc:[0-9]+: rows == 4 rows 3 of 4");
  EXPECT_DEATH(CHECK_EQ(rows, 4), "3 != 4");
  EXPECT_DEATH(CHECK_LT(rows, 3), "3 >= 3");
  EXPECT_DEATH(CHECK_LE(rows, 2), "3 > 2");
}

TEST(CheckTest, EvaluatesItsConditionOnce) {
  int calls = 0;
  CHECK(++calls == 1);
  EXPECT_EQ(calls, 1);
}

TEST(TypesTest, ARangeEndsBehindItsLast) {
  EXPECT_EQ((Range{3, 4}.end()), 7);
  EXPECT_EQ((Range{3, 4}), (Range{3, 4}));
  EXPECT_NE((Range{3, 4}), (Range{3, 5}));
}

TEST(TypesTest, EveryFinishReasonHasAName) {
  EXPECT_EQ(Name(FinishReason::kStop), "stop");
  EXPECT_EQ(Name(FinishReason::kLength), "length");
  EXPECT_EQ(Name(FinishReason::kCancelled), "cancelled");
  EXPECT_EQ(Name(FinishReason::kDeadline), "deadline");
  EXPECT_EQ(Name(FinishReason::kError), "error");
  EXPECT_EQ(Name(FinishReason::kNone), "none");
}

TEST(ClockTest, TheSystemsClockDoesNotGoBack) {
  const SystemClock clock;
  const TimePoint before = clock.Now();
  EXPECT_LE(before, clock.Now());
  EXPECT_GT(clock.UnixMs(), 1'600'000'000'000);
}

}  // namespace
}  // namespace levin
