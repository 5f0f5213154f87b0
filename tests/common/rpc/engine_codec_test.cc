#include "common/rpc/engine_codec.h"

#include <gtest/gtest.h>

#include <limits>

namespace levin {
namespace {

Generation Full() {
  Generation g;
  g.ordinal = 7;
  g.request_id = std::string("0123456789abcde\0", 16);
  g.attempt = 2;
  g.prompt = {1, 5, 200'063};
  g.max_new_tokens = 40;
  g.deadline_unix_ms = 1'700'000'000'123;
  g.sampling = {.temperature = 0.7f,
                .top_p = 0.9f,
                .top_k = 40,
                .min_p = 0.05f,
                .repetition_penalty = 1.1f,
                .frequency_penalty = -0.5f,
                .presence_penalty = 0.25f,
                .seed = 0xdeadbeefcafef00d,
                .logit_bias = {{3, -100.0f}, {9, 1.5f}},
                .allowed_ids = {1, 2, 3},
                .bad_sequences = {{4}, {5, 6}},
                .stop_ids = {2},
                .min_tokens = 3,
                .logprobs = 0};
  return g;
}

v1::Submit Encoded(const Generation& generation) {
  v1::Submit proto;
  ToProto(generation, &proto);
  return proto;
}

TEST(EngineCodec, AGenerationComesBackAsItWent) {
  const Generation sent = Full();
  const Result<Generation> got = FromProto(Encoded(sent));
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(got->ordinal, sent.ordinal);
  EXPECT_EQ(got->request_id, sent.request_id);
  EXPECT_EQ(got->attempt, sent.attempt);
  EXPECT_EQ(got->prompt, sent.prompt);
  EXPECT_EQ(got->sampling, sent.sampling);
  EXPECT_EQ(got->max_new_tokens, sent.max_new_tokens);
  EXPECT_EQ(got->deadline_unix_ms, sent.deadline_unix_ms);
}

TEST(EngineCodec, NoLogprobsAndZeroLogprobsAreDifferent) {
  Generation none = Full();
  none.sampling.logprobs = -1;
  EXPECT_EQ(FromProto(Encoded(none))->sampling.logprobs, -1);
  EXPECT_EQ(FromProto(Encoded(Full()))->sampling.logprobs, 0);
}

TEST(EngineCodec, WhatIsNotBuiltSaysSo) {
  const auto expect_unsupported = [](auto&& change) {
    v1::Submit proto = Encoded(Full());
    change(proto);
    const Result<Generation> got = FromProto(proto);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code(), Code::kUnimplemented);
    EXPECT_EQ(got.error().reason(), "UNSUPPORTED");
  };
  expect_unsupported([](v1::Submit& s) { s.set_n(2); });
  expect_unsupported([](v1::Submit& s) { s.set_prompt_logprobs(0); });
  expect_unsupported([](v1::Submit& s) { s.set_prompt_handle("h"); });
  expect_unsupported([](v1::Submit& s) { s.set_from_index(1); });
  expect_unsupported([](v1::Submit& s) { s.add_resume_ids(1); });
}

TEST(EngineCodec, BrokenSubmitsAreRefused) {
  const auto expect_refused = [](Code code, auto&& change) {
    v1::Submit proto = Encoded(Full());
    change(proto);
    const Result<Generation> got = FromProto(proto);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code(), code) << got.error().message();
  };
  expect_refused(Code::kInvalidArgument, [](v1::Submit& s) { s.set_ordinal(0); });
  expect_refused(Code::kInvalidArgument, [](v1::Submit& s) { s.set_request_id("short"); });
  expect_refused(Code::kInvalidArgument, [](v1::Submit& s) { s.set_max_new_tokens(-1); });
  expect_refused(Code::kInvalidArgument,
                 [](v1::Submit& s) { s.set_max_new_tokens(int64_t{1} << 31); });
  expect_refused(Code::kInvalidArgument, [](v1::Submit& s) { s.set_prompt_ids(0, 0x80000000u); });
  expect_refused(Code::kInvalidArgument,
                 [](v1::Submit& s) { s.mutable_sampling()->add_bias_ids(1); });
  expect_refused(Code::kInvalidArgument,
                 [](v1::Submit& s) { s.mutable_sampling()->set_logprobs(~0u); });
  expect_refused(Code::kInvalidArgument, [](v1::Submit& s) {
    s.mutable_sampling()->set_temperature(std::numeric_limits<float>::quiet_NaN());
  });
  expect_refused(Code::kInvalidArgument, [](v1::Submit& s) {
    s.mutable_sampling()->set_bias_values(0, std::numeric_limits<float>::infinity());
  });
  expect_refused(Code::kDataLoss, [](v1::Submit& s) { s.set_prompt_ids(0, 2); });
}

TEST(EngineCodec, TokensComeBackWithTheirLogprobs) {
  const std::vector<SampledToken> tokens = {
      {.token = 5, .logprob = -0.5f, .rank = 1, .top = {{5, -0.5f}, {6, -1.0f}}},
      {.token = 9, .logprob = -2.0f, .rank = 3, .top = {}}};
  v1::TokenRun run;
  ToProto(TokenRunView{.ordinal = 3, .first_index = 11, .tokens = tokens}, true, &run);
  EXPECT_EQ(run.ordinal(), 3u);
  EXPECT_EQ(run.first_index(), 11u);
  const Result<std::vector<SampledToken>> got = TokensFromProto(run);
  ASSERT_TRUE(got);
  ASSERT_EQ(got->size(), 2u);
  EXPECT_EQ((*got)[0].top.size(), 2u);
  EXPECT_EQ((*got)[0].top[1].token, 6);
  EXPECT_EQ((*got)[0].top[1].logprob, -1.0f);
  EXPECT_EQ((*got)[1].token, 9);
  EXPECT_EQ((*got)[1].rank, 3);
}

TEST(EngineCodec, RunsOfOneGenerationMerge) {
  const std::vector<SampledToken> first = {
      {.token = 5, .logprob = -1, .rank = 1, .top = {{5, -1.0f}}}};
  const std::vector<SampledToken> second = {{.token = 6, .logprob = -2, .rank = 2, .top = {}},
                                            {.token = 7, .logprob = -3, .rank = 1, .top = {}}};
  v1::TokenRun run, more;
  ToProto(TokenRunView{.ordinal = 1, .first_index = 4, .tokens = first}, true, &run);
  ToProto(TokenRunView{.ordinal = 1, .first_index = 5, .tokens = second}, true, &more);
  AppendRun(std::move(more), &run);
  EXPECT_EQ(run.first_index(), 4u);
  const auto got = TokensFromProto(run);
  ASSERT_TRUE(got);
  ASSERT_EQ(got->size(), 3u);
  EXPECT_EQ((*got)[2].token, 7);
  EXPECT_EQ((*got)[1].logprob, -2.0f);
}

TEST(EngineCodec, ATokenRunMustCountItsLogprobs) {
  v1::TokenRun run;
  run.add_ids(1);
  run.add_ids(2);
  run.add_logprobs();
  EXPECT_EQ(TokensFromProto(run).error().code(), Code::kInvalidArgument);
  run.add_logprobs()->add_top_ids(3);
  EXPECT_EQ(TokensFromProto(run).error().code(), Code::kInvalidArgument);
}

TEST(EngineCodec, OrdinalSetsAreDeltaCoded) {
  const OrdinalSet set{.watermark = 10, .live = {2, 3, 10}};
  v1::FinishedSet proto;
  ToProto(set, &proto);
  EXPECT_EQ(proto.live_delta(0), 2u);
  EXPECT_EQ(proto.live_delta(1), 1u);
  EXPECT_EQ(proto.live_delta(2), 7u);
  EXPECT_EQ(*FromProto(proto), set);
  EXPECT_TRUE(set.IsOver(1));
  EXPECT_FALSE(set.IsOver(3));
  EXPECT_FALSE(set.IsOver(11));
}

TEST(EngineCodec, OrdinalSetsThatDoNotRiseOrOverflowAreRefused) {
  const auto refused = [](uint64_t watermark, std::initializer_list<uint64_t> deltas) {
    v1::FinishedSet proto;
    proto.set_watermark(watermark);
    for (const uint64_t delta : deltas) proto.add_live_delta(delta);
    return !FromProto(proto);
  };
  EXPECT_TRUE(refused(10, {0}));
  EXPECT_TRUE(refused(10, {11}));
  EXPECT_TRUE(refused(10, {4, 0}));
  EXPECT_TRUE(refused(10, {4, ~uint64_t{0}}));
  EXPECT_FALSE(refused(10, {4, 6}));
}

TEST(EngineCodec, ErrorsCarryReasonRetryAndBlame) {
  v1::EngineError proto;
  ToProto(Status(Code::kResourceExhausted, "QUEUE_FULL", "16 wait").WithRetryAfterMs(250), 9, true,
          &proto);
  EXPECT_EQ(proto.ordinal(), 9u);
  EXPECT_EQ(proto.retry(), v1::RETRY_CLASS_LATER);
  EXPECT_TRUE(proto.blame_group());
  const Status got = FromProto(proto);
  EXPECT_EQ(got.code(), Code::kResourceExhausted);
  EXPECT_EQ(got.reason(), "QUEUE_FULL");
  EXPECT_EQ(got.retry_after_ms(), 250);
  EXPECT_EQ(FromProto(v1::EngineError()).code(), Code::kUnknown);
}

TEST(EngineCodec, CapacityAndUsageComeBack) {
  const Capacity sent{.total_blocks = 9,
                      .free_blocks = 4,
                      .reserved_blocks = 5,
                      .total_slots = 3,
                      .free_slots = 1,
                      .bytes_per_block = 100,
                      .bytes_per_slot = 200,
                      .running = 2,
                      .waiting = 6,
                      .prefill_backlog_tokens = 77,
                      .submit_window = 10,
                      .step = 12,
                      .draining = true,
                      .suspect = true};
  v1::Capacity proto;
  v1::Geometry geometry;
  geometry.set_bytes_per_block(100);
  geometry.set_bytes_per_slot(200);
  ToProto(sent, &proto);
  const Capacity got = FromProto(proto, geometry);
  EXPECT_EQ(got.free_blocks, 4);
  EXPECT_EQ(got.reserved_blocks, 5);
  EXPECT_EQ(got.bytes_per_slot, 200);
  EXPECT_EQ(got.waiting, 6);
  EXPECT_EQ(got.submit_window, 10);
  EXPECT_TRUE(got.draining);
  EXPECT_TRUE(got.suspect);
  ToProto(Capacity{}, &proto);
  EXPECT_FALSE(FromProto(proto, geometry).suspect);
  v1::EngineUsage usage;
  ToProto(Usage{.prompt_tokens = 1,
                .cached_tokens = 2,
                .output_tokens = 3,
                .queue_us = 4,
                .prefill_us = 5,
                .decode_us = 6},
          &usage);
  EXPECT_EQ(FromProto(usage).decode_us, 6);
  EXPECT_EQ(FromProto(usage).output_tokens, 3);
}

TEST(EngineCodec, EveryFinishReasonComesBack) {
  for (const FinishReason reason :
       {FinishReason::kStop, FinishReason::kLength, FinishReason::kCancelled,
        FinishReason::kDeadline, FinishReason::kError}) {
    EXPECT_EQ(FromProto(ToProto(reason)), reason);
  }
}

}  // namespace
}  // namespace levin
