#include "worker/session/session.h"

#include <gtest/gtest.h>

#include "common/rpc/limits.h"
#include "tests/support/fake_clock.h"
#include "tests/worker/session/fake_door.h"

namespace levin {
namespace {

using Events = std::vector<decltype(RouterEvent::what)>;

class SessionTest : public ::testing::Test {
 protected:
  void Send(int64_t first, size_t count) {
    Events events;
    events.emplace_back(TokensEvent{
        .ordinal = 1, .first_index = first, .tokens = std::vector<SampledToken>(count)});
    session_.Send(std::move(events));
  }

  FakeClock clock_;
  FakeDoor door_;
  Session session_{1, door_, clock_};
};

TEST_F(SessionTest, WritesOneFrameAtATimeAndMergesTheRest) {
  Send(0, 1);
  Send(1, 1);
  Send(2, 1);
  EXPECT_EQ(door_.frames.size(), 1u);
  door_.Flush(session_);
  ASSERT_EQ(door_.frames.size(), 2u);
  EXPECT_EQ(std::get<TokensFrame>(door_.frames[1]).runs[0].tokens.size(), 2u);
}

TEST_F(SessionTest, EndsOnlyBehindWhatWaits) {
  Send(0, 1);
  Send(1, 1);
  session_.Close(Status::Ok());
  EXPECT_FALSE(door_.end);
  door_.Flush(session_);
  EXPECT_EQ(door_.frames.size(), 2u);
  ASSERT_TRUE(door_.end);
  EXPECT_TRUE(door_.end->ok());
}

TEST_F(SessionTest, TheFirstReasonToEndIsTheOneThatIsSaid) {
  Send(0, 1);
  session_.Close(Unavailable("first"));
  session_.Close(Unavailable("second"));
  door_.Flush(session_);
  EXPECT_EQ(door_.end->message(), "first");
}

TEST_F(SessionTest, ARouterThatDoesNotReadLosesItsSessionAtTheBacklogLimit) {
  Send(0, 1);
  constexpr size_t kTokens = 1024;
  for (size_t sent = 0; sent < kSessionBacklogBytesMax; sent += kTokens)
    Send(static_cast<int64_t>(1 + sent), kTokens);
  door_.Flush(session_);
  ASSERT_TRUE(door_.end);
  EXPECT_EQ(door_.end->reason(), "SLOW_ROUTER");
}

TEST_F(SessionTest, AWriteThatIsStuckForTenSecondsIsCut) {
  Send(0, 1);
  clock_.Advance(std::chrono::seconds(9));
  session_.Tick();
  EXPECT_FALSE(door_.cancelled);
  clock_.Advance(std::chrono::seconds(2));
  session_.Tick();
  EXPECT_TRUE(door_.cancelled);
}

TEST_F(SessionTest, AnEndDoesNotWaitForAStuckWrite) {
  Send(0, 1);
  session_.Close(Unavailable("x"));
  clock_.Advance(std::chrono::seconds(2));
  session_.Tick();
  EXPECT_TRUE(door_.cancelled);
}

TEST_F(SessionTest, AfterABrokenWriteNothingMoreIsWritten) {
  Send(0, 1);
  Send(1, 1);
  door_.writing = false;
  session_.OnWriteDone(false);
  EXPECT_EQ(door_.frames.size(), 1u);
  EXPECT_TRUE(door_.end);
}

TEST_F(SessionTest, ADetachedDoorIsNotTouched) {
  session_.Detach();
  Send(0, 1);
  session_.Close(Status::Ok());
  session_.Tick();
  EXPECT_TRUE(door_.frames.empty());
  EXPECT_FALSE(door_.end);
}

}  // namespace
}  // namespace levin
