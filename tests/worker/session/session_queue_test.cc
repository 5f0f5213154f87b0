#include "worker/session/session_queue.h"

#include <gtest/gtest.h>

namespace levin {
namespace {

TokensEvent TokenRun(uint64_t ordinal, int64_t first, std::initializer_list<TokenId> ids) {
  TokensEvent event{.ordinal = ordinal, .first_index = first, .tokens = {}};
  for (const TokenId id : ids)
    event.tokens.push_back({.token = id, .logprob = 0, .rank = 0, .top = {}});
  return event;
}

std::vector<TokenId> Ids(const TokensEvent& event) {
  std::vector<TokenId> ids;
  for (const SampledToken& token : event.tokens) ids.push_back(token.token);
  return ids;
}

FinishedEvent Done(uint64_t ordinal) {
  return {.ordinal = ordinal, .reason = FinishReason::kStop, .usage = {}, .ids_hash = 0};
}

TEST(SessionQueue, IsEmptyAtFirst) { EXPECT_FALSE(SessionQueue().Take()); }

TEST(SessionQueue, MergesTheStepsThatPassWhileAWriteIsUnderWay) {
  SessionQueue queue;
  queue.Push(TokenRun(1, 0, {10}));
  ASSERT_TRUE(queue.Take());
  queue.Push(TokenRun(1, 1, {11}));
  queue.Push(TokenRun(2, 0, {20}));
  queue.Push(TokenRun(1, 2, {12, 13}));
  const std::optional<OutFrame> frame = queue.Take();
  ASSERT_TRUE(frame);
  const auto& tokens = std::get<TokensFrame>(*frame);
  ASSERT_EQ(tokens.runs.size(), 2u);
  EXPECT_EQ(tokens.runs[0].first_index, 1);
  EXPECT_EQ(Ids(tokens.runs[0]), (std::vector<TokenId>{11, 12, 13}));
  EXPECT_EQ(Ids(tokens.runs[1]), (std::vector<TokenId>{20}));
  EXPECT_FALSE(queue.Take());
}

TEST(SessionQueue, KeepsAcceptedBeforeTokensBeforeTheEndOfEachGeneration) {
  SessionQueue queue;
  queue.Push(AcceptedEvent{.ordinal = 1});
  queue.Push(TokenRun(1, 0, {5}));
  queue.Push(Done(1));
  queue.Push(AcceptedEvent{.ordinal = 2});
  queue.Push(TokenRun(2, 0, {6}));
  EXPECT_TRUE(std::holds_alternative<AcceptedEvent>(*queue.Take()));
  EXPECT_TRUE(std::holds_alternative<AcceptedEvent>(*queue.Take()));
  EXPECT_EQ(std::get<TokensFrame>(*queue.Take()).runs.size(), 2u);
  EXPECT_EQ(std::get<FinishedEvent>(*queue.Take()).ordinal, 1u);
  EXPECT_FALSE(queue.Take());
}

TEST(SessionQueue, TokensThatKeepComingDoNotHoldBackAnEnd) {
  SessionQueue queue;
  queue.Push(TokenRun(1, 0, {5}));
  queue.Push(Done(1));
  EXPECT_TRUE(std::holds_alternative<TokensFrame>(*queue.Take()));
  queue.Push(TokenRun(2, 0, {6}));
  EXPECT_TRUE(std::holds_alternative<FinishedEvent>(*queue.Take()));
  EXPECT_TRUE(std::holds_alternative<TokensFrame>(*queue.Take()));
}

TEST(SessionQueue, ALaterLevelTakesTheEarlierOnesPlace) {
  SessionQueue queue;
  queue.Push(Capacity{.free_blocks = 1});
  queue.Push(FreedAckEvent{.watermark = 3, .unfreed = {2}, .step = 1});
  queue.Push(Capacity{.free_blocks = 2});
  queue.Push(FreedAckEvent{.watermark = 4, .unfreed = {}, .step = 2});
  EXPECT_EQ(std::get<FreedAckEvent>(*queue.Take()).watermark, 4u);
  EXPECT_EQ(std::get<Capacity>(*queue.Take()).free_blocks, 2);
  EXPECT_FALSE(queue.Take());
}

TEST(SessionQueue, EpochEndIsTheLastWordOfItsRound) {
  SessionQueue queue;
  queue.Push(EpochEndFrame{.reason = "hang", .message = {}});
  queue.Push(Capacity{});
  queue.Push(Done(1));
  EXPECT_TRUE(std::holds_alternative<FinishedEvent>(*queue.Take()));
  EXPECT_TRUE(std::holds_alternative<Capacity>(*queue.Take()));
  EXPECT_TRUE(std::holds_alternative<EpochEndFrame>(*queue.Take()));
}

TEST(SessionQueue, CountsWhatWaitsAndForgetsWhatLeft) {
  SessionQueue queue;
  for (int i = 0; i < 100; ++i) queue.Push(TokenRun(1, 2 * i, {1, 2}));
  EXPECT_GE(queue.bytes(), 200 * sizeof(TokenId));
  queue.Push(Done(1));
  queue.Push(ErrorEvent{.ordinal = 2, .status = Internal(std::string(1000, 'x'))});
  EXPECT_GE(queue.bytes(), 1800u);
  while (queue.Take()) {
  }
  EXPECT_EQ(queue.bytes(), 0u);
}

}  // namespace
}  // namespace levin
