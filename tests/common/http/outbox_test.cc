#include "common/http/outbox.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

namespace levin {
namespace {

class OutboxTest : public ::testing::Test {
 protected:
  OutboxTest() : outbox_([this] { ++wakes_; }, 100) { outbox_.Take(); }  // as after the handler

  int wakes_ = 0;
  Outbox outbox_;
};

TEST_F(OutboxTest, WakesOnceHoweverMuchIsWrittenBetweenTwoTakes) {
  outbox_.StartStream(200, {});
  EXPECT_EQ(wakes_, 0);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(outbox_.Write("ab"));
  EXPECT_EQ(wakes_, 1);
  EXPECT_EQ(outbox_.Take().bytes, "abababababababababab");
  outbox_.Finish();
  EXPECT_EQ(wakes_, 2);
}

TEST_F(OutboxTest, DoesNotWakeWhileTheHandlerRuns) {
  int wakes = 0;
  Outbox outbox([&wakes] { ++wakes; }, 100);
  outbox.Send({200, {}, "now"});
  EXPECT_EQ(wakes, 0);
  EXPECT_EQ(outbox.Take().head->body, "now");
}

TEST_F(OutboxTest, HoldsTheHeadOfAStreamUntilItsFirstByte) {
  outbox_.StartStream(201, {{"a", "b"}});
  EXPECT_FALSE(outbox_.Take().head);
  outbox_.Write("x");
  const Outgoing outgoing = outbox_.Take();
  EXPECT_EQ(outgoing.head->status, 201);
  EXPECT_FALSE(outgoing.whole);
  EXPECT_EQ(outgoing.end, Outgoing::End::kOpen);
  EXPECT_FALSE(outbox_.Take().head);
}

TEST_F(OutboxTest, ASendInsteadWinsOnlyBeforeTheHeadHasLeft) {
  outbox_.StartStream(200, {});
  outbox_.Write("not yet taken");
  EXPECT_TRUE(outbox_.SendInstead({503, {}, "no"}));
  const Outgoing outgoing = outbox_.Take();
  EXPECT_TRUE(outgoing.whole);
  EXPECT_EQ(outgoing.head->status, 503);
  EXPECT_EQ(outgoing.bytes, "");
  EXPECT_FALSE(outbox_.Write("more"));
}

TEST_F(OutboxTest, CountsBytesUntilTheSocketHasThem) {
  outbox_.StartStream(200, {});
  outbox_.Write("abc");
  EXPECT_EQ(outbox_.buffered_bytes(), 3u);
  outbox_.Take();
  EXPECT_EQ(outbox_.buffered_bytes(), 3u);
  outbox_.Write("de");
  EXPECT_EQ(outbox_.buffered_bytes(), 5u);
  outbox_.Written(3);
  EXPECT_EQ(outbox_.buffered_bytes(), 2u);
}

TEST_F(OutboxTest, TakesExactlyItsBoundAndThenReportsTheOverflow) {
  outbox_.StartStream(200, {});
  EXPECT_TRUE(outbox_.Write(std::string(100, 'a')));
  EXPECT_FALSE(outbox_.Take().overflow);
  EXPECT_FALSE(outbox_.Write("b"));
  EXPECT_FALSE(outbox_.Write("c"));
  EXPECT_TRUE(outbox_.Take().overflow);
}

TEST_F(OutboxTest, AWriterThatGivesUpAfterAnOverflowIsStillTold) {
  int gone = 0;
  outbox_.OnGone([&gone] { ++gone; });
  outbox_.StartStream(200, {});
  EXPECT_FALSE(outbox_.Write(std::string(101, 'a')));
  EXPECT_TRUE(outbox_.Take().overflow);
  EXPECT_FALSE(outbox_.Write("b"));  // the room that Take made is not used again
  outbox_.Dropped();
  outbox_.Close();
  EXPECT_EQ(gone, 1);
}

TEST_F(OutboxTest, PingsOnlyAnOpenStream) {
  outbox_.SetPing(15'000, ": ping\n\n");
  EXPECT_EQ(outbox_.ping_ms(), 0);
  EXPECT_EQ(outbox_.TakePing().bytes, "");
  outbox_.StartStream(200, {});
  EXPECT_EQ(outbox_.ping_ms(), 15'000);
  const Outgoing outgoing = outbox_.TakePing();
  EXPECT_EQ(outgoing.head->status, 200);
  EXPECT_EQ(outgoing.bytes, ": ping\n\n");
  EXPECT_FALSE(outbox_.SendInstead({500, {}, ""}));
  outbox_.Finish();
  EXPECT_EQ(outbox_.ping_ms(), 0);
}

TEST_F(OutboxTest, ClosedItCallsBackOnceAndTakesNothingMore) {
  int gone = 0;
  outbox_.OnGone([&gone] { ++gone; });
  outbox_.StartStream(200, {});
  outbox_.Close();
  outbox_.Close();
  EXPECT_EQ(gone, 1);
  EXPECT_FALSE(outbox_.Write("a"));
  outbox_.Finish();
  outbox_.Dropped();
  EXPECT_EQ(wakes_, 0);
  outbox_.OnGone([&gone] { ++gone; });
  EXPECT_EQ(gone, 2);
}

TEST_F(OutboxTest, ForgetsTheCallbackWithTheEndSoThatNothingIsHeldInACircle) {
  const auto held = std::make_shared<int>(1);
  outbox_.OnGone([held] {});
  EXPECT_EQ(held.use_count(), 2);
  outbox_.Send({200, {}, ""});
  EXPECT_EQ(held.use_count(), 1);
}

TEST_F(OutboxTest, TwoAnswersToOneRequestAreOurMistake) {
  outbox_.Send({200, {}, ""});
  EXPECT_DEATH(outbox_.Send({200, {}, ""}), "answered twice");
  EXPECT_DEATH(outbox_.StartStream(200, {}), "answered twice");
}

TEST_F(OutboxTest, WritersAndTheConnectionMayRace) {
  Outbox outbox([] {}, 1 << 20);
  outbox.StartStream(200, {});
  std::thread writer([&outbox] {
    for (int i = 0; i < 2000; ++i) EXPECT_TRUE(outbox.Write("0123456789"));
    outbox.Finish();
  });
  std::string all;
  Outgoing outgoing;
  while (outgoing.end == Outgoing::End::kOpen) {
    outgoing = outbox.Take();
    outbox.Written(outgoing.bytes.size());
    all += outgoing.bytes;
  }
  writer.join();
  EXPECT_EQ(all.size(), 20'000u);
  EXPECT_EQ(outbox.buffered_bytes(), 0u);
}

}  // namespace
}  // namespace levin
