#include "router/inference/generator.h"

#include <gtest/gtest.h>

#include "common/metrics/router_metrics.h"
#include "tests/support/demo_model.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_engine_client.h"

namespace levin {
namespace {

struct Record {
  std::string text;
  std::vector<std::string> events;  // names, in order
  std::optional<ChoiceFinishedEvent> finish;
  std::optional<CompletedEvent> completed;
  Status failure;
  bool destroyed = false;
};

class RecordingReplySink final : public ReplySink {
 public:
  explicit RecordingReplySink(Record& record) : record_(record) {}
  ~RecordingReplySink() override { record_.destroyed = true; }

  void OnEvents(std::vector<ReplyEvent> events) override {
    EXPECT_FALSE(events.empty());
    constexpr const char* kNames[] = {"started", "first",  "delta",     "tool",
                                      "args",    "finish", "completed", "failed"};
    for (ReplyEvent& event : events) {
      EXPECT_FALSE(record_.completed || !record_.failure.ok()) << "nothing comes after the end";
      record_.events.emplace_back(kNames[event.index()]);
      if (auto* delta = std::get_if<DeltaEvent>(&event)) record_.text += delta->text;
      if (auto* finish = std::get_if<ChoiceFinishedEvent>(&event)) record_.finish = *finish;
      if (auto* completed = std::get_if<CompletedEvent>(&event)) record_.completed = *completed;
      if (auto* failed = std::get_if<FailedEvent>(&event)) record_.failure = failed->status;
    }
  }

 private:
  Record& record_;
};

class GeneratorTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = testing::DemoModel().release(); }
  static void TearDownTestSuite() { delete model_; }

  std::shared_ptr<Reply> Start(InferenceRequest request = {}) {
    if (request.prompt.empty()) request.prompt = {1, 2, 3};
    auto prepared = generator_.Prepare(std::move(request));
    EXPECT_TRUE(prepared) << prepared.error().message();
    auto reply =
        generator_.Start(*std::move(prepared), std::make_unique<RecordingReplySink>(record_));
    EXPECT_TRUE(reply) << reply.error().message();
    return *reply;
  }
  FakeEngineClient::Script Text(std::string_view text, bool with_end = true) {
    std::vector<TokenId> ids = testing::DemoIds(*model_, text);
    if (with_end) ids.push_back(model_->info().eos);
    return FakeEngineClient::Tokens(ids);
  }

  static inline ServedModel* model_ = nullptr;
  FakeClock clock_;
  FakeEngineClient engine_;
  RouterMetrics metrics_{{.model_name = "levin-demo", .groups = {"0"}}};
  Generator generator_{*model_, engine_, clock_, 0, &metrics_};
  Record record_;
};

TEST_F(GeneratorTest, AReplyHasItsEventsInOrderAndItsUsage) {
  auto script = Text("You are welcome");
  script.cached_tokens = 2;
  engine_.Answer(script);
  Start();
  engine_.RunToEnd();
  EXPECT_EQ(record_.text, "You are welcome");
  EXPECT_EQ(record_.events.front(), "started");
  EXPECT_EQ(record_.events[1], "first");
  EXPECT_EQ(record_.events.back(), "completed");
  EXPECT_EQ(record_.events[record_.events.size() - 2], "finish");
  EXPECT_EQ(record_.completed->usage.prompt_tokens, 3);
  EXPECT_EQ(record_.completed->usage.cached_tokens, 2);
  EXPECT_EQ(record_.completed->usage.completion_tokens, static_cast<int64_t>(script.tokens.size()));
  EXPECT_TRUE(record_.destroyed);
  EXPECT_TRUE(engine_.cancels().empty()) << "the leader saw this end itself";
}

TEST_F(GeneratorTest, AStopStringCompletesAtOnceAndTellsTheEngine) {
  auto script = Text("one two three", false);
  script.endless = true;
  engine_.Answer(script);
  InferenceRequest request;
  request.stop = {"two"};
  Start(request);
  engine_.RunToEnd();
  EXPECT_EQ(record_.text, "one ");
  EXPECT_EQ(record_.finish->stop_string, "two");
  ASSERT_TRUE(record_.completed);
  ASSERT_EQ(engine_.cancels().size(), 1u);
  EXPECT_EQ(engine_.cancels()[0].second, CancelReason::kStopString);
  EXPECT_EQ(engine_.live(), 0);
  EXPECT_TRUE(record_.destroyed);
}

TEST_F(GeneratorTest, NothingToDrawEndsByLength) {
  InferenceRequest request;
  request.max_tokens_least = 0;
  request.max_tokens = 0;
  Start(request);
  engine_.RunToEnd();
  EXPECT_EQ(record_.finish->reason, ReplyFinish::kLength);
  EXPECT_EQ(record_.completed->usage.completion_tokens, 0);
}

TEST_F(GeneratorTest, ACancelEndsInAFailure) {
  auto script = Text("a", false);
  script.endless = true;
  engine_.Answer(script);
  auto reply = Start();
  for (int i = 0; i < 4; ++i) engine_.Step();
  reply->Cancel(CancelReason::kAbort);
  reply->Cancel(CancelReason::kAbort);
  engine_.RunToEnd();
  EXPECT_EQ(record_.failure.reason(), "CANCELLED");
  reply->Cancel(CancelReason::kAbort);  // also after the end
  EXPECT_EQ(record_.events.back(), "failed");
}

TEST_F(GeneratorTest, ADeadlineIsToldAsOne) {
  FakeEngineClient::Script script;
  script.endless = true;
  engine_.AnswerAllWith(script);
  auto reply = Start();
  engine_.Step();
  reply->Cancel(CancelReason::kDeadline);
  engine_.RunToEnd();
  EXPECT_EQ(record_.failure.code(), Code::kDeadlineExceeded);
}

TEST_F(GeneratorTest, AnEnginesFaultIsTheReplysFailure) {
  engine_.Answer(FakeEngineClient::Failure(
      Status(Code::kAborted, "ENGINE_RESTARTED", "rank 1 is gone"), {300, 301}));
  Start();
  engine_.RunToEnd();
  EXPECT_EQ(record_.failure.reason(), "ENGINE_RESTARTED");
  EXPECT_FALSE(record_.completed);
}

TEST_F(GeneratorTest, ARefusedSubmitDropsTheSinkUncalled) {
  engine_.RefuseNext(Status(Code::kResourceExhausted, "QUEUE_FULL", "full"));
  InferenceRequest request;
  request.prompt = {1};
  auto prepared = generator_.Prepare(request);
  auto reply =
      generator_.Start(*std::move(prepared), std::make_unique<RecordingReplySink>(record_));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().reason(), "QUEUE_FULL");
  EXPECT_TRUE(record_.events.empty());
  EXPECT_TRUE(record_.destroyed);
}

TEST_F(GeneratorTest, WithoutAGroupNothingIsPrepared) {
  engine_.set_group(std::nullopt);
  const auto prepared = generator_.Prepare({.prompt = {1}});
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().reason(), "NO_GROUP");
  EXPECT_GT(prepared.error().retry_after_ms(), 0);
  EXPECT_EQ(generator_.fingerprint(), "");
}

TEST_F(GeneratorTest, EveryGenerationIsCountedOnceAtItsEnd) {
  auto script = Text("one two three");
  script.cached_tokens = 1;
  engine_.Answer(script);
  Start();
  while (engine_.Step()) clock_.Advance(std::chrono::milliseconds(20));
  EXPECT_EQ(metrics_.finish(FinishLabel::kStop).value(), 1);
  EXPECT_EQ(metrics_.tokens(TokenKind::kPrompt).value(), 3);
  EXPECT_EQ(metrics_.tokens(TokenKind::kCached).value(), 1);
  EXPECT_EQ(metrics_.tokens(TokenKind::kOutput).value(), static_cast<double>(script.tokens.size()));
  const std::string text = metrics_.Serialize();
  EXPECT_NE(text.find("levin_itl_seconds_count{model_name=\"levin-demo\"} " +
                      std::to_string(script.tokens.size() - 1)),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("cached=\"part\"} 1"), std::string::npos);

  record_ = {};
  auto reply = Start();
  reply->Cancel(CancelReason::kClientGone);
  engine_.RunToEnd();
  EXPECT_EQ(metrics_.finish(FinishLabel::kCancelled).value(), 1);
  EXPECT_EQ(metrics_.client_disconnects(Phase::kQueued).value(), 1);
  EXPECT_EQ(metrics_.tokens(TokenKind::kPrompt).value(), 3) << "nothing was computed for it";
}

TEST_F(GeneratorTest, RefusalsAreCountedByTheirReason) {
  const auto count = [&](RejectReason reason) {
    return metrics_.rejections(reason, RequestClass::kDefault).value();
  };
  EXPECT_FALSE(generator_.Prepare({.prompt = {1}, .temperature = 3}));
  EXPECT_EQ(count(RejectReason::kInvalidField), 1);
  engine_.RefuseNext(Status(Code::kResourceExhausted, "QUEUE_FULL", "full"));
  auto prepared = generator_.Prepare({.prompt = {1}});
  EXPECT_FALSE(
      generator_.Start(*std::move(prepared), std::make_unique<RecordingReplySink>(record_)));
  EXPECT_EQ(count(RejectReason::kQueueFull), 1);
  engine_.set_group(std::nullopt);
  EXPECT_FALSE(generator_.Prepare({.prompt = {1}}));
  EXPECT_EQ(count(RejectReason::kNoGroup), 1);
}

TEST_F(GeneratorTest, RequestsWithoutASeedDifferAndThoseWithOneDoNot) {
  InferenceRequest request{.prompt = {1}};
  const auto seed = [&] { return generator_.Prepare(request)->generation.sampling.seed; };
  EXPECT_NE(seed(), seed());
  request.seed = 7;
  EXPECT_EQ(seed(), 7u);
}

}  // namespace
}  // namespace levin
