#include "router/dispatch/request_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <atomic>
#include <thread>

#include "tests/support/fake_clock.h"
#include "tests/support/recording_sink.h"

namespace levin {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

struct Asked {
  std::shared_ptr<SinkRecord> record = std::make_shared<SinkRecord>();
  std::unique_ptr<Call> call;
  Status refusal;
};

class RequestTrackerTest : public ::testing::Test {
 protected:
  RequestTrackerTest() { Make({}); }

  void Make(RequestTrackerOptions options) {
    tracker_ = RequestTracker::Create(options, clock_, [this] { ++wakes_; });
    tracker_->Open();
  }

  Asked Submit(int64_t deadline_ms = 0, std::function<void()> on_tokens = {}) {
    Asked asked;
    Generation generation;
    generation.prompt = {1, 2, 3};
    generation.max_new_tokens = 100;
    if (deadline_ms > 0) generation.deadline_unix_ms = clock_.UnixMs() + deadline_ms;
    auto call = tracker_->Submit(
        std::move(generation), std::make_unique<RecordingSink>(asked.record, std::move(on_tokens)));
    if (call)
      asked.call = std::move(*call);
    else
      asked.refusal = call.error();
    return asked;
  }

  // The next frames, printed: "submit 1", "cancel 1", "finished 3 live 2".
  std::vector<std::string> Frames() {
    std::vector<std::string> frames;
    while (auto frame = tracker_->NextFrame()) {
      if (const auto* submit = std::get_if<SubmitFrame>(&*frame)) {
        frames.push_back("submit " + std::to_string(submit->generation.ordinal));
        last_submit_ = *submit;
      } else if (const auto* cancel = std::get_if<CancelFrame>(&*frame)) {
        frames.push_back("cancel " + std::to_string(cancel->ordinal));
        last_cancel_ = *cancel;
      } else {
        const auto& level = std::get<FinishedSet>(*frame);
        std::string text = "finished " + std::to_string(level.watermark);
        for (uint64_t ordinal : level.live) text += " live " + std::to_string(ordinal);
        frames.push_back(text);
      }
    }
    return frames;
  }

  Status Tokens(uint64_t ordinal, int64_t first_index, std::vector<TokenId> ids) {
    TokenRunIn run{ordinal, first_index, {}};
    for (TokenId id : ids) run.tokens.emplace_back().token = id;
    std::vector<TokenRunIn> runs;
    runs.push_back(std::move(run));
    return tracker_->OnTokens(std::move(runs));
  }
  Status Finish(uint64_t ordinal, int64_t output_tokens,
                FinishReason reason = FinishReason::kStop) {
    return tracker_->OnFinished(ordinal, reason,
                                {.prompt_tokens = 3, .output_tokens = output_tokens});
  }

  FakeClock clock_;
  std::atomic<int> wakes_ = 0;
  std::shared_ptr<RequestTracker> tracker_;
  SubmitFrame last_submit_;
  CancelFrame last_cancel_;
};

TEST_F(RequestTrackerTest, CarriesOneGenerationFromSubmitToItsEnd) {
  Asked one = Submit();
  EXPECT_THAT(Frames(), ElementsAre("submit 1"));
  EXPECT_EQ(last_submit_.generation.prompt, (std::vector<TokenId>{1, 2, 3}));
  EXPECT_EQ(last_submit_.generation.request_id.size(), 16u);
  EXPECT_EQ(last_submit_.generation.attempt, 1u);
  EXPECT_EQ(tracker_->queued(), 1);

  tracker_->OnAccepted(1, true, 2);
  EXPECT_EQ(one.record->admitted(), 2);
  EXPECT_EQ(tracker_->queued(), 0);
  EXPECT_EQ(tracker_->running(), 1);
  EXPECT_TRUE(Tokens(1, 0, {7, 8}).ok());
  EXPECT_TRUE(Tokens(1, 2, {9}).ok());
  EXPECT_TRUE(Finish(1, 3).ok());

  EXPECT_THAT(one.record->tokens(), ElementsAre(7, 8, 9));
  ASSERT_TRUE(one.record->done());
  EXPECT_TRUE(one.record->done()->status.ok());
  EXPECT_EQ(one.record->done()->reason, FinishReason::kStop);
  EXPECT_EQ(one.record->done()->usage.output_tokens, 3);
  EXPECT_TRUE(one.record->destroyed());
  EXPECT_TRUE(one.record->in_order());
  EXPECT_EQ(tracker_->running(), 0);

  EXPECT_THAT(Frames(), ElementsAre("finished 1"));
  EXPECT_EQ(tracker_->unfreed(), 1);
  tracker_->OnFreed(1, {});
  EXPECT_EQ(tracker_->unfreed(), 0);
  EXPECT_EQ(tracker_->Tick(), TimePoint::max());
}

TEST_F(RequestTrackerTest, OrdinalsRiseAndRequestIdsDiffer) {
  Asked one = Submit();
  Asked two = Submit();
  EXPECT_THAT(Frames(), ElementsAre("submit 1", "submit 2"));
  const std::string second = last_submit_.generation.request_id;
  Asked three = Submit();
  EXPECT_THAT(Frames(), ElementsAre("submit 3"));
  EXPECT_NE(last_submit_.generation.request_id, second);
}

TEST_F(RequestTrackerTest, DropsTokensThatCameBefore) {
  Asked one = Submit();
  Frames();
  EXPECT_TRUE(Tokens(1, 0, {7, 8}).ok());
  EXPECT_TRUE(Tokens(1, 0, {7}).ok());
  EXPECT_TRUE(Tokens(1, 1, {8, 9}).ok());
  EXPECT_THAT(one.record->tokens(), ElementsAre(7, 8, 9));
  EXPECT_TRUE(one.record->in_order());
}

TEST_F(RequestTrackerTest, AGapIsAnErrorOfTheSession) {
  Asked one = Submit();
  Asked two = Submit();
  Frames();
  EXPECT_TRUE(Tokens(1, 0, {7}).ok());
  const Status gap = Tokens(1, 2, {9});
  EXPECT_EQ(gap.code(), Code::kInternal);
  EXPECT_THAT(gap.message(), ::testing::HasSubstr("index 2"));
  EXPECT_THAT(one.record->tokens(), ElementsAre(7));
  EXPECT_FALSE(Finish(1, 2).ok());  // one of two tokens never came
  EXPECT_FALSE(one.record->done());
}

TEST_F(RequestTrackerTest, TokensThatAreNotTheLeadersAreAnErrorOfTheSession) {
  Asked one = Submit();
  Frames();
  EXPECT_TRUE(Tokens(1, 0, {7, 8}).ok());
  const Usage usage{.prompt_tokens = 3, .output_tokens = 2};
  const std::vector<TokenId> others = {7, 9}, same = {7, 8};
  const auto hash = [](const std::vector<TokenId>& ids) {
    return XXH3_64bits(ids.data(), ids.size() * sizeof(TokenId));
  };
  EXPECT_FALSE(tracker_->OnFinished(1, FinishReason::kStop, usage, hash(others)).ok());
  EXPECT_FALSE(one.record->done());
  EXPECT_TRUE(tracker_->OnFinished(1, FinishReason::kStop, usage, hash(same)).ok());
  EXPECT_TRUE(one.record->done());
}

TEST_F(RequestTrackerTest, TheFirstTokenAdmitsWhereNoAcceptedCame) {
  Asked one = Submit();
  Frames();
  EXPECT_TRUE(Tokens(1, 0, {7}).ok());
  EXPECT_EQ(one.record->admitted(), 0);
  tracker_->OnAccepted(1, true, 5);  // late: not a second time
  EXPECT_EQ(one.record->admitted(), 0);
  EXPECT_TRUE(one.record->in_order());
}

TEST_F(RequestTrackerTest, FramesForAnUnknownOrdinalAreIgnored) {
  EXPECT_TRUE(Tokens(17, 3, {1}).ok());
  EXPECT_TRUE(Finish(17, 3).ok());
  tracker_->OnError(17, Internal("late"));
  tracker_->OnAccepted(17, true, 0);
  EXPECT_EQ(tracker_->running(), 0);
}

TEST_F(RequestTrackerTest, ACancelledOneEndsOutsideOfTheCancelAndItsTokensNoMoreCount) {
  Asked one = Submit();
  Frames();
  EXPECT_TRUE(Tokens(1, 0, {7, 8}).ok());
  one.call->Cancel(CancelReason::kStopString);
  EXPECT_FALSE(one.record->done());  // never from inside Cancel
  tracker_->DeliverPending();
  ASSERT_TRUE(one.record->done());
  EXPECT_TRUE(one.record->done()->status.ok());
  EXPECT_EQ(one.record->done()->reason, FinishReason::kCancelled);
  EXPECT_EQ(one.record->done()->usage.output_tokens, 2);
  EXPECT_EQ(one.record->done()->usage.prompt_tokens, 3);

  EXPECT_THAT(Frames(), ElementsAre("cancel 1", "finished 1"));
  EXPECT_EQ(last_cancel_.reason, CancelReason::kStopString);
  EXPECT_TRUE(Tokens(1, 2, {9}).ok());
  EXPECT_TRUE(Finish(1, 3, FinishReason::kCancelled).ok());
  one.call->Cancel(CancelReason::kAbort);
  one.call.reset();
  tracker_->DeliverPending();
  EXPECT_EQ(one.record->done_count(), 1);
  EXPECT_THAT(one.record->tokens(), ElementsAre(7, 8));
  EXPECT_THAT(Frames(), ElementsAre());
}

TEST_F(RequestTrackerTest, DroppingTheCallCancels) {
  Asked one = Submit();
  Frames();
  one.call.reset();
  EXPECT_THAT(Frames(), ElementsAre("cancel 1", "finished 1"));
  EXPECT_EQ(last_cancel_.reason, CancelReason::kClientGone);
}

TEST_F(RequestTrackerTest, OneCancelledBeforeItWasSentIsNeverSent) {
  Asked one = Submit();
  one.call->Cancel(CancelReason::kClientGone);
  EXPECT_EQ(tracker_->queued(), 0);
  EXPECT_THAT(Frames(), ElementsAre());
  tracker_->DeliverPending();
  EXPECT_EQ(one.record->done()->reason, FinishReason::kCancelled);
}

TEST_F(RequestTrackerTest, ACancelFromInsideTheSinkIsFollowedByTheEnd) {
  Asked one;
  one = Submit(0, [&] { one.call->Cancel(CancelReason::kStopString); });
  Frames();
  EXPECT_TRUE(Tokens(1, 0, {7}).ok());
  ASSERT_TRUE(one.record->done());
  EXPECT_EQ(one.record->done()->reason, FinishReason::kCancelled);
  EXPECT_TRUE(one.record->in_order());
}

TEST_F(RequestTrackerTest, ADeadlineEndsItThoughTheGroupIsSilent) {
  Asked sent = Submit(50);
  Frames();
  EXPECT_EQ(last_submit_.remaining_ms, 50);
  Asked other = Submit();
  EXPECT_EQ(tracker_->Tick(), clock_.Now() + milliseconds(50));
  clock_.Advance(milliseconds(49));
  tracker_->Tick();
  tracker_->DeliverPending();
  EXPECT_FALSE(sent.record->done());
  clock_.Advance(milliseconds(1));
  tracker_->Tick();
  tracker_->DeliverPending();
  ASSERT_TRUE(sent.record->done());
  EXPECT_EQ(sent.record->done()->status.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(sent.record->done()->reason, FinishReason::kDeadline);
  EXPECT_FALSE(other.record->done());
  EXPECT_THAT(Frames(), ElementsAre("cancel 1", "finished 1", "submit 2"));
  EXPECT_EQ(last_cancel_.reason, CancelReason::kDeadline);
}

TEST_F(RequestTrackerTest, WhatExpiredInTheQueueIsNeverSent) {
  Asked one = Submit(50);
  clock_.Advance(milliseconds(60));
  EXPECT_THAT(Frames(), ElementsAre());
  tracker_->DeliverPending();
  EXPECT_EQ(one.record->done()->status.reason(), "DEADLINE_EXCEEDED");
}

TEST_F(RequestTrackerTest, ADeadlineInThePastIsRefused) {
  Generation generation;
  generation.deadline_unix_ms = clock_.UnixMs();
  auto record = std::make_shared<SinkRecord>();
  auto call = tracker_->Submit(std::move(generation), std::make_unique<RecordingSink>(record));
  ASSERT_FALSE(call);
  EXPECT_EQ(call.error().code(), Code::kDeadlineExceeded);
  EXPECT_TRUE(record->destroyed());
  EXPECT_FALSE(record->done());
}

TEST_F(RequestTrackerTest, AFullQueueRefusesAndNamesATimeToComeBack) {
  Make({.queued_max = 2});
  Asked one = Submit();
  Asked two = Submit();
  Asked three = Submit();
  EXPECT_EQ(three.refusal.code(), Code::kResourceExhausted);
  EXPECT_EQ(three.refusal.reason(), "QUEUE_FULL");
  EXPECT_GE(three.refusal.retry_after_ms(), 1000);
  EXPECT_LE(three.refusal.retry_after_ms(), 60'000);
  EXPECT_TRUE(three.record->destroyed());

  Frames();
  tracker_->OnAccepted(1, true, 0);  // one place is free: what runs does not queue
  EXPECT_TRUE(Submit().refusal.ok());
}

TEST_F(RequestTrackerTest, ACancelledWaiterFreesItsPlaceAtOnce) {
  Make({.queued_max = 1});
  Asked one = Submit();
  one.call->Cancel(CancelReason::kClientGone);
  EXPECT_TRUE(Submit().refusal.ok());
}

TEST_F(RequestTrackerTest, NoMoreThanTheWindowWaitsAtTheLeader) {
  Make({.leader_queued_max = 2});
  std::vector<Asked> asked;
  for (int i = 0; i < 4; ++i) asked.push_back(Submit());
  EXPECT_THAT(Frames(), ElementsAre("submit 1", "submit 2"));
  tracker_->OnAccepted(1, false, 0);  // queued there: still in the window
  EXPECT_THAT(Frames(), ElementsAre());
  tracker_->OnAccepted(1, true, 0);
  EXPECT_THAT(Frames(), ElementsAre("submit 3"));
  // A cancelled waiter leaves the window when the leader says that it is gone.
  asked[1].call->Cancel(CancelReason::kClientGone);
  EXPECT_THAT(Frames(), ElementsAre("cancel 2", "finished 3 live 1 live 3"));
  tracker_->OnFreed(3, std::vector<uint64_t>{1, 3});
  EXPECT_THAT(Frames(), ElementsAre("submit 4"));
}

TEST_F(RequestTrackerTest, AnErrorFrameEndsItsGeneration) {
  Asked one = Submit();
  Frames();
  tracker_->OnError(1, Status(Code::kInvalidArgument, "CACHE_NEVER_FITS", "needs 9 of 4 blocks"));
  ASSERT_TRUE(one.record->done());
  EXPECT_EQ(one.record->done()->status.reason(), "CACHE_NEVER_FITS");
  EXPECT_EQ(one.record->done()->reason, FinishReason::kError);
  EXPECT_THAT(Frames(), ElementsAre("finished 1"));
}

TEST_F(RequestTrackerTest, TheEndOfAnEpochEndsEveryCallByWhatItHadShown) {
  Asked unsent_no_more = Submit();
  Asked with_tokens = Submit();
  Frames();
  EXPECT_TRUE(Tokens(2, 0, {7}).ok());
  Asked unsent = Submit();
  tracker_->Close(Unavailable("down"), "rank_lost, rank 1");

  EXPECT_EQ(unsent_no_more.record->done()->status.reason(), "EPOCH_ENDED");
  EXPECT_EQ(unsent_no_more.record->done()->status.code(), Code::kUnavailable);
  EXPECT_GT(unsent_no_more.record->done()->status.retry_after_ms(), 0);
  EXPECT_EQ(unsent.record->done()->status.reason(), "EPOCH_ENDED");
  EXPECT_EQ(with_tokens.record->done()->status.reason(), "ENGINE_RESTARTED");
  EXPECT_EQ(with_tokens.record->done()->status.code(), Code::kAborted);
  EXPECT_THAT(with_tokens.record->done()->status.message(), ::testing::HasSubstr("rank 1"));
  EXPECT_EQ(tracker_->queued(), 0);
  EXPECT_EQ(tracker_->running(), 0);

  EXPECT_EQ(Submit().refusal.message(), "down");
  EXPECT_THAT(Frames(), ElementsAre());
}

TEST_F(RequestTrackerTest, ANewSessionLearnsAtOnceWhatIsOver) {
  Asked one = Submit();
  Frames();
  tracker_->Close(Unavailable("down"), "stream broken");
  tracker_->Open();
  Asked two = Submit();
  EXPECT_THAT(Frames(), ElementsAre("finished 1", "submit 2"));
}

TEST_F(RequestTrackerTest, ASilentGroupGetsNoNewWorkButKeepsWhatItHas) {
  Asked sent = Submit();
  Frames();
  Asked unsent = Submit();
  tracker_->Pause(Status(Code::kUnavailable, "NO_GROUP", "silent for 3 s"));
  EXPECT_EQ(Submit().refusal.message(), "silent for 3 s");
  EXPECT_THAT(Frames(), ElementsAre());
  EXPECT_TRUE(Tokens(1, 0, {5}).ok());
  sent.call->Cancel(CancelReason::kClientGone);
  EXPECT_THAT(Frames(), ElementsAre("cancel 1", "finished 1"));
  tracker_->Resume();
  EXPECT_THAT(Frames(), ElementsAre("submit 2"));
  EXPECT_TRUE(Submit().refusal.ok());
}

TEST_F(RequestTrackerTest, ShutdownEndsAllAndStaysShut) {
  Asked one = Submit();
  tracker_->Shutdown(Status(Code::kUnavailable, "DRAINING", "shutting down"));
  EXPECT_EQ(one.record->done()->status.reason(), "DRAINING");
  tracker_->Open();
  EXPECT_EQ(Submit().refusal.reason(), "DRAINING");
}

TEST_F(RequestTrackerTest, ACallThatOutlivesTheTrackerDoesNothing) {
  Asked one = Submit();
  tracker_.reset();
  EXPECT_EQ(one.record->done_count(), 1);
  one.call->Cancel(CancelReason::kAbort);
  one.call.reset();
  EXPECT_EQ(one.record->done_count(), 1);
}

// Frames, cancels, deadlines and the end of the epoch from several threads at once: whatever wins,
// every sink is told its end exactly once and its tokens in order.
TEST_F(RequestTrackerTest, EveryRaceEndsEachCallExactlyOnce) {
  constexpr int kCalls = 400;
  Make({.queued_max = kCalls, .leader_queued_max = kCalls});
  std::vector<Asked> asked(kCalls);
  std::atomic<int> submitted = 0;
  std::atomic<bool> stop = false;

  std::thread clients([&] {
    for (int i = 0; i < kCalls; ++i) {
      asked[i] = Submit(i % 5 == 0 ? 1 : 0);
      if (i % 3 == 0 && asked[i].call) asked[i].call->Cancel(CancelReason::kClientGone);
      submitted = i + 1;
    }
  });
  std::thread leader([&] {
    uint64_t seen = 0;
    while (!stop) {
      while (auto frame = tracker_->NextFrame()) {
        if (auto* submit = std::get_if<SubmitFrame>(&*frame)) seen = submit->generation.ordinal;
        if (auto* level = std::get_if<FinishedSet>(&*frame))
          tracker_->OnFreed(level->watermark, level->live);
      }
      for (uint64_t ordinal : tracker_->live_ordinals()) {
        (void)Tokens(ordinal, 0, {1, 2});
        (void)Tokens(ordinal, 1, {2, 3});
        if (ordinal % 2 == 0) (void)Finish(ordinal, 3);
      }
      if (seen == kCalls) std::this_thread::yield();
    }
  });
  std::thread service([&] {
    while (!stop) {
      clock_.Advance(milliseconds(1));
      tracker_->Tick();
      tracker_->DeliverPending();
    }
  });

  clients.join();
  while (submitted < kCalls) std::this_thread::yield();
  tracker_->Close(Unavailable("down"), "test");
  stop = true;
  leader.join();
  service.join();
  tracker_->DeliverPending();
  for (int i = 0; i < kCalls; ++i) {
    if (!asked[i].refusal.ok()) continue;
    EXPECT_EQ(asked[i].record->done_count(), 1) << i;
    EXPECT_TRUE(asked[i].record->in_order()) << i;
    EXPECT_TRUE(asked[i].record->destroyed()) << i;
  }
  EXPECT_EQ(tracker_->running(), 0);
  EXPECT_EQ(tracker_->queued(), 0);
}

}  // namespace
}  // namespace levin
