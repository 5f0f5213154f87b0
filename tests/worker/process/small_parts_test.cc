#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"
#include "worker/process/abort_switch.h"
#include "worker/process/hang_watch.h"
#include "worker/process/load_progress.h"

namespace levin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(LoadProgress, SaysALineEachFivePercentAndAtTheEnd) {
  FakeClock clock;
  LoadProgress progress(3, clock);
  EXPECT_EQ(*progress.Line(0, 200'000'000), "levin-worker: rank 3 loading 0% (0 of 200 MB)");
  EXPECT_FALSE(progress.Line(8'000'000, 200'000'000));
  EXPECT_EQ(*progress.Line(10'000'000, 200'000'000),
            "levin-worker: rank 3 loading 5% (10 of 200 MB)");
  EXPECT_FALSE(progress.Line(10'000'001, 200'000'000));
  EXPECT_TRUE(progress.Line(200'000'000, 200'000'000));
  EXPECT_FALSE(progress.Line(200'000'000, 200'000'000));
}

TEST(LoadProgress, ASlowDiskIsHeardEachSecondThatBringsAPercent) {
  FakeClock clock;
  LoadProgress progress(0, clock);
  (void)progress.Line(0, 100);
  clock.Advance(seconds(1));
  EXPECT_FALSE(progress.Line(0, 100));
  EXPECT_TRUE(progress.Line(1, 100));
  EXPECT_FALSE(progress.Line(2, 100));
}

class HangWatchTest : public ::testing::Test {
 protected:
  bool After(seconds time, uint64_t begun, uint64_t done, bool work) {
    bool hung = false;
    for (seconds passed{0}; passed < time; passed += seconds(1)) {
      clock_.Advance(seconds(1));
      hung = watch_.Hung(begun, done, work, pairs_, clock_.Now());
    }
    return hung;
  }
  int64_t pairs_ = 0;
  FakeClock clock_;
  HangWatch watch_{milliseconds(1000), 2.0};
};

TEST_F(HangWatchTest, IdleIsNotHung) { EXPECT_FALSE(After(seconds(100), 5, 5, false)); }

TEST_F(HangWatchTest, AStepMayTakeTenTimesItsPrediction) {
  EXPECT_FALSE(After(seconds(11), 6, 5, true));
  EXPECT_TRUE(After(seconds(1), 6, 5, true));
}

TEST_F(HangWatchTest, StepsThatEndAreNotHung) {
  for (uint64_t step = 1; step < 30; ++step) EXPECT_FALSE(After(seconds(5), step + 1, step, true));
}

TEST_F(HangWatchTest, AStallOfTheWatchItselfDoesNotCount) {
  EXPECT_FALSE(After(seconds(2), 6, 5, true));
  clock_.Advance(seconds(100));
  EXPECT_FALSE(watch_.Hung(6, 5, true, 0, clock_.Now()));
}

TEST_F(HangWatchTest, AfterASilentRankCameBackTheStepHasItsWholeTimeAgain) {
  EXPECT_TRUE(After(seconds(12), 6, 5, true));
  watch_.Excuse(clock_.Now());
  EXPECT_FALSE(After(seconds(10), 6, 5, true));
  EXPECT_TRUE(After(seconds(1), 6, 5, true));
}

TEST_F(HangWatchTest, FiveSecondsAreTheLeast) {
  EXPECT_EQ(HangWatch(milliseconds(1), 1.0).Limit(0), seconds(5));
}

// 8,192 tokens that look back on a million positions: 17 s of attention at 2 ns a pair.
TEST_F(HangWatchTest, AChunkFarIntoAPromptMayTakeLonger) {
  pairs_ = int64_t{8192} << 20;
  EXPECT_FALSE(After(seconds(180), 6, 5, true));
  EXPECT_TRUE(After(seconds(3), 6, 5, true));
}

class FakeCollective final : public Collective {
 public:
  int rank() const override { return 0; }
  int ranks() const override { return 2; }
  Status AllReduceSum(std::span<float>) override { return Status::Ok(); }
  Status AllGather(std::span<const std::byte>, std::span<std::byte>) override {
    return Status::Ok();
  }
  void Abort(std::string_view why) override { reasons.emplace_back(why); }
  std::vector<std::string> reasons;
};

TEST(AbortSwitch, AbortsOnceWhetherPulledBeforeOrAfter) {
  FakeCollective early, late;
  AbortSwitch one, two;
  one.Connect(&early);
  one.Pull("first");
  one.Pull("second");
  EXPECT_EQ(early.reasons, (std::vector<std::string>{"first"}));
  two.Pull("gone");
  two.Connect(&late);
  EXPECT_EQ(late.reasons, (std::vector<std::string>{"gone"}));
}

TEST(AbortSwitch, ADisconnectedCollectiveIsLeftAlone) {
  FakeCollective collective;
  AbortSwitch abort;
  abort.Connect(&collective);
  abort.Connect(nullptr);
  abort.Pull("late");
  EXPECT_TRUE(collective.reasons.empty());
}

}  // namespace
}  // namespace levin
