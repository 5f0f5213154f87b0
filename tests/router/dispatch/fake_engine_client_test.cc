#include "tests/support/fake_engine_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/recording_sink.h"

namespace levin {
namespace {

using ::testing::ElementsAre;

Generation Ask(int32_t max_new_tokens = 100) {
  Generation generation;
  generation.prompt = {1, 2};
  generation.max_new_tokens = max_new_tokens;
  return generation;
}

TEST(FakeEngineClientTest, AnswersByScriptOneStepAtATime) {
  FakeEngineClient engine;
  engine.Answer(FakeEngineClient::Tokens({5, 6}));
  auto record = std::make_shared<SinkRecord>();
  auto call = engine.Submit(Ask(), std::make_unique<RecordingSink>(record));
  ASSERT_TRUE(call);
  EXPECT_FALSE(record->admitted());
  engine.Step();
  EXPECT_EQ(record->admitted(), 0);
  engine.Step();
  EXPECT_THAT(record->tokens(), ElementsAre(5));
  engine.RunToEnd();
  EXPECT_THAT(record->tokens(), ElementsAre(5, 6));
  EXPECT_EQ(record->done()->reason, FinishReason::kStop);
  EXPECT_EQ(record->done()->usage.output_tokens, 2);
}

TEST(FakeEngineClientTest, EndsByLengthByStopIdAndByError) {
  FakeEngineClient engine;
  engine.AnswerAllWith(FakeEngineClient::Tokens({5, 6, 7, 8}));
  auto by_length = std::make_shared<SinkRecord>();
  auto by_stop = std::make_shared<SinkRecord>();
  auto by_error = std::make_shared<SinkRecord>();
  auto first = engine.Submit(Ask(2), std::make_unique<RecordingSink>(by_length));
  Generation stopping = Ask();
  stopping.sampling.stop_ids = {7};
  auto second = engine.Submit(stopping, std::make_unique<RecordingSink>(by_stop));
  engine.Answer(FakeEngineClient::Failure(Internal("broken"), {5}));
  auto third = engine.Submit(Ask(), std::make_unique<RecordingSink>(by_error));
  engine.RunToEnd();
  EXPECT_EQ(by_length->done()->reason, FinishReason::kLength);
  EXPECT_THAT(by_length->tokens(), ElementsAre(5, 6));
  EXPECT_EQ(by_stop->done()->reason, FinishReason::kStop);
  EXPECT_THAT(by_stop->tokens(), ElementsAre(5, 6, 7));
  EXPECT_EQ(by_error->done()->status.message(), "broken");
  EXPECT_THAT(by_error->tokens(), ElementsAre(5));
}

TEST(FakeEngineClientTest, RunsByItselfAndDeliversCancels) {
  FakeEngineClient engine(FakeEngineClient::Mode::kByItself);
  FakeEngineClient::Script endless = FakeEngineClient::Tokens({5, 6});
  endless.endless = true;
  engine.Answer(endless);
  auto record = std::make_shared<SinkRecord>();
  auto call = engine.Submit(Ask(), std::make_unique<RecordingSink>(record));
  ASSERT_TRUE(record->WaitForTokens(2));
  EXPECT_FALSE(record->done());
  (*call)->Cancel(CancelReason::kAbort);
  ASSERT_TRUE(record->WaitForDone());
  EXPECT_EQ(record->done()->reason, FinishReason::kCancelled);
  EXPECT_EQ(engine.cancels().size(), 1u);
}

TEST(FakeEngineClientTest, RefusesWhatItIsToldToRefuse) {
  FakeEngineClient engine;
  engine.RefuseNext(ResourceExhausted("full"));
  auto record = std::make_shared<SinkRecord>();
  auto call = engine.Submit(Ask(), std::make_unique<RecordingSink>(record));
  ASSERT_FALSE(call);
  EXPECT_TRUE(record->destroyed());
  EXPECT_FALSE(record->done());
}

}  // namespace
}  // namespace levin
