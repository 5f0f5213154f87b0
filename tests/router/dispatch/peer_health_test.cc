#include "router/dispatch/peer_health.h"

#include <gtest/gtest.h>

namespace levin {
namespace {

using std::chrono::seconds;
using State = PeerHealth::State;

TimePoint At(int s) { return TimePoint(seconds(s)); }

TEST(PeerHealthTest, SilenceMakesSuspectThenLostAndASignOfLifeMakesGood) {
  PeerHealth health(seconds(3), seconds(15), seconds(1), At(100));
  for (int s = 101; s < 103; ++s) EXPECT_EQ(health.Judge(At(s)), State::kGood) << s;
  EXPECT_EQ(health.NextChange(), At(103));
  for (int s = 103; s < 110; ++s) EXPECT_EQ(health.Judge(At(s)), State::kSuspect) << s;
  EXPECT_EQ(health.NextChange(), At(115));
  health.Heard(At(109));
  EXPECT_EQ(health.Judge(At(110)), State::kGood);
  for (int s = 111; s < 124; ++s) EXPECT_NE(health.Judge(At(s)), State::kLost) << s;
  EXPECT_EQ(health.Judge(At(124)), State::kLost);
}

TEST(PeerHealthTest, AnOlderSignOfLifeChangesNothing) {
  PeerHealth health(seconds(3), seconds(15), seconds(1), At(100));
  health.Heard(At(90));
  EXPECT_EQ(health.Judge(At(101)), State::kGood);
}

// This process was stopped for a minute: what the peer sent meanwhile waits in the socket.
TEST(PeerHealthTest, OurOwnStallIsNotThePeersSilence) {
  PeerHealth health(seconds(3), seconds(15), seconds(1), At(100));
  EXPECT_EQ(health.Judge(At(101)), State::kGood);
  EXPECT_EQ(health.Judge(At(161)), State::kGood);
  EXPECT_EQ(health.Judge(At(162)), State::kGood);
  EXPECT_EQ(health.Judge(At(163)), State::kGood);
  EXPECT_EQ(health.Judge(At(164)), State::kSuspect);
}

}  // namespace
}  // namespace levin
