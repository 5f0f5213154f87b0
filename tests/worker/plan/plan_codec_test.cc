#include "worker/plan/plan_codec.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace levin {
namespace {

BatchPlan SmallPlan() {
  BatchPlan plan;
  plan.epoch = 0x0102030405060708;
  plan.step = 3;
  plan.tokens = {5, 6, 7};
  plan.blocks = {9};
  plan.finished = {11};
  NewSequence started;
  started.sequence = 12;
  started.state_slot = 1;
  started.blocks = {0, 1};
  started.sampling.temperature = 0.5f;
  started.sampling.seed = 77;
  started.sampling.stop_ids = {2};
  plan.started = {started};
  plan.rows = {{.sequence = 12, .position = 0, .tokens = {0, 3}, .fresh = true, .draws = 1}};
  return plan;
}

BatchPlan RandomPlan(std::mt19937_64& random) {
  const auto below = [&](int n) {
    return static_cast<int32_t>(random() % static_cast<uint64_t>(n));
  };
  const auto ids = [&](int most) {
    std::vector<TokenId> out(static_cast<size_t>(below(most + 1)));
    for (TokenId& id : out) id = below(1000);
    return out;
  };
  const auto range = [&](size_t size) {
    const int32_t first = below(static_cast<int>(size) + 1);
    return Range{first, below(static_cast<int>(size) - first + 1)};
  };
  BatchPlan plan;
  plan.epoch = random();
  plan.step = random();
  plan.tokens = ids(40);
  plan.blocks = ids(20);
  for (TokenId id : ids(4)) plan.finished.push_back(static_cast<SequenceId>(id));
  for (int32_t i = below(4); i > 0; --i) {
    NewSequence started;
    started.sequence = random();
    started.state_slot = below(9);
    started.blocks = range(plan.blocks.size());
    started.counted = range(plan.tokens.size());
    SamplingParams& p = started.sampling;
    p.temperature = static_cast<float>(below(100)) / 50;
    p.top_k = below(5);
    p.seed = random();
    p.allowed_ids = ids(5);
    p.stop_ids = ids(3);
    p.logprobs = below(3) - 1;
    for (TokenId id : ids(3)) p.logit_bias.emplace_back(id, 0.25f * static_cast<float>(id));
    for (int32_t j = below(3); j > 0; --j) p.bad_sequences.push_back(ids(4));
    plan.started.push_back(started);
  }
  for (int32_t i = below(5); i > 0; --i)
    plan.rows.push_back({.sequence = random(),
                         .position = below(1 << 20),
                         .tokens = range(plan.tokens.size()),
                         .fresh = below(2) == 1,
                         .stepwise = below(2) == 1,
                         .draws = below(2)});
  return plan;
}

std::string Hex(std::string_view bytes) {
  std::string out;
  for (unsigned char byte : bytes) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

// The smallest that a started sequence can be: its bytes must not be taken for too few.
TEST(PlanCodecTest, AnyNumberOfSequencesMayStartWithNothingBehindThem) {
  for (const int count : {1, 2, 64, 1000}) {
    BatchPlan plan;
    for (int i = 0; i < count; ++i) {
      NewSequence started;
      started.sequence = static_cast<SequenceId>(i + 1);
      plan.started.push_back(started);
    }
    const Result<BatchPlan> decoded = DecodePlan(EncodePlan(plan));
    ASSERT_TRUE(decoded) << count << ": " << decoded.error().message();
    EXPECT_EQ(*decoded, plan);
  }
}

TEST(PlanCodecTest, WritesTheGoldenBytesOfVersionOne) {
  EXPECT_EQ(Hex(EncodePlan(SmallPlan())),
            "4c504c4e"
            "0100"
            "0807060504030201"
            "0300000000000000"  // magic, version, epoch, step
            "03000000"
            "05000000"
            "06000000"
            "07000000"  // tokens
            "01000000"
            "09000000"  // blocks
            "01000000"
            "0b00000000000000"  // finished
            "01000000"
            "0c00000000000000"
            "01000000"
            "00000000"
            "01000000"  // started: id, slot, blocks
            "0000003f"
            "0000803f"
            "00000000"
            "00000000"  // temperature, top_p, top_k, min_p
            "0000803f"
            "00000000"
            "00000000"          // penalties
            "4d00000000000000"  // seed
            "00000000"
            "00000000"
            "00000000"  // bias, allowed ids, bad sequences
            "01000000"
            "02000000"  // stop ids
            "00000000"
            "ffffffff"  // min_tokens, logprobs
            "00000000"
            "00000000"  // counted
            "01000000"
            "0c00000000000000"
            "0000000000000000"
            "00000000"
            "03000000"  // row
            "01"
            "00"
            "01000000");
}

TEST(PlanCodecTest, GivesBackEveryPlanItWrote) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const BatchPlan plan = RandomPlan(random);
    const Result<BatchPlan> decoded = DecodePlan(EncodePlan(plan));
    ASSERT_TRUE(decoded) << decoded.error().message();
    ASSERT_EQ(*decoded, plan);
  }
}

TEST(PlanCodecTest, RefusesEveryTruncation) {
  const std::string bytes = EncodePlan(SmallPlan());
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(DecodePlan(std::string_view(bytes).substr(0, length))) << length;
}

TEST(PlanCodecTest, RefusesBytesBehindThePlan) {
  const Result<BatchPlan> decoded = DecodePlan(EncodePlan(SmallPlan()) + '\0');
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code(), Code::kInvalidArgument);
  EXPECT_NE(decoded.error().message().find("bytes follow the plan"), std::string::npos);
}

TEST(PlanCodecTest, NamesAVersionItDoesNotKnow) {
  std::string bytes = EncodePlan(SmallPlan());
  bytes[4] = 2;
  const Result<BatchPlan> decoded = DecodePlan(bytes);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(decoded.error().message().find("version 2, expected 1"), std::string::npos);
}

TEST(PlanCodecTest, RefusesRangesThatLeaveTheirArrays) {
  for (Range range : {Range{0, 4}, Range{3, 1}, Range{-1, 1}, Range{1, -1}, Range{1, INT32_MAX}}) {
    BatchPlan plan = SmallPlan();
    plan.rows[0].tokens = range;
    EXPECT_FALSE(DecodePlan(EncodePlan(plan))) << range.first << ' ' << range.count;
    plan = SmallPlan();
    plan.started[0].blocks = range;
    EXPECT_FALSE(DecodePlan(EncodePlan(plan))) << range.first << ' ' << range.count;
  }
}

// Whatever is changed in the bytes, the answer is an error or a plan that encodes to those bytes.
TEST(PlanCodecTest, SurvivesMutatedBytesAndHasOneFormPerPlan) {
  std::mt19937_64 random(2);
  int accepted = 0;
  for (int i = 0; i < 30'000; ++i) {
    std::string bytes = EncodePlan(RandomPlan(random));
    for (uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes[at] = static_cast<char>(0xff);
          break;
        case 2:
          bytes.erase(at, 1 + random() % 8);
          break;
        case 3:
          bytes.insert(at, 1 + random() % 8, static_cast<char>(random()));
          break;
      }
      if (bytes.empty()) break;
    }
    const Result<BatchPlan> decoded = DecodePlan(bytes);
    if (!decoded) continue;
    ++accepted;
    ASSERT_EQ(EncodePlan(*decoded), bytes);
  }
  EXPECT_GT(accepted, 1000);  // else the mutations prove little
}

}  // namespace
}  // namespace levin
