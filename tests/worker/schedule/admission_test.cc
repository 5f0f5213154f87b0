// Who may pass whom when memory is short.
#include "tests/worker/schedule/scheduler_fixture.h"

namespace levin {
namespace {

class AdmissionTest : public SchedulerFixture {
 protected:
  void Skips(int skips) {
    SchedulerOptions options = Small();
    options.admission_skips = skips;
    Start(options);
  }
  bool Admitted(uint64_t ordinal) const { return !All<levin::Admitted>(ordinal).empty(); }

  // Half the pool is held for long, and a request for more than the other half waits.
  void HoldHalfAndAskForMore() {
    ASSERT_TRUE(Add(1, Ask(10, 502)).ok());  // 8 of 16 blocks
    Step();
    ASSERT_TRUE(Add(2, Ask(10, 566)).ok());  // 9
  }
};

TEST_F(AdmissionTest, ASmallOnePassesALargeOneThatDoesNotFit) {
  Skips(32);
  HoldHalfAndAskForMore();
  ASSERT_TRUE(Add(3, Ask(10, 5)).ok());
  Step();
  EXPECT_FALSE(Admitted(2));
  EXPECT_TRUE(Admitted(3));
}

TEST_F(AdmissionTest, ALargeOneIsPassedOnlySoOftenThenMemoryIsSavedUpForIt) {
  Skips(3);
  HoldHalfAndAskForMore();
  for (uint64_t i = 10; i < 20; ++i) ASSERT_TRUE(Add(i, Ask(10, 2)).ok());
  for (int i = 0; i < 50; ++i) Step();
  EXPECT_TRUE(Admitted(10) && Admitted(11) && Admitted(12));
  EXPECT_FALSE(Admitted(13));  // though it would fit
  EXPECT_FALSE(Admitted(2));
  Cancel(1);
  Step();
  EXPECT_TRUE(Admitted(2));
  EXPECT_TRUE(Admitted(13));
  RunToTheEnd();
  for (uint64_t i = 10; i < 20; ++i) EXPECT_TRUE(Admitted(i));
}

TEST_F(AdmissionTest, WithoutSkipsTheOrderOfArrivalHolds) {
  Skips(0);
  HoldHalfAndAskForMore();
  ASSERT_TRUE(Add(3, Ask(10, 5)).ok());
  for (int i = 0; i < 20; ++i) Step();
  EXPECT_FALSE(Admitted(3));
  Cancel(2);
  Step();
  EXPECT_TRUE(Admitted(3));
}

TEST_F(AdmissionTest, AThousandRefusalsLeaveBothResourcesUnchanged) {
  Skips(1'000'000);
  HoldHalfAndAskForMore();
  for (int i = 0; i < 400; ++i) Step();
  EXPECT_EQ(scheduler_->capacity().free_slots, 3);
  EXPECT_EQ(scheduler_->capacity().free_blocks, 8);
}

}  // namespace
}  // namespace levin
