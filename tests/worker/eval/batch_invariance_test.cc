// The batch-invariant mode over real steps of engine, scheduler, ranks and network: 64 prompts give
// the same bits alone and together, however the scheduler cuts them on the grid of 64 tokens.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/worker/eval/job_group.h"
#include "tests/worker/model/tiny_network.h"
#include "worker/backend/cpu/simd.h"

namespace levin::testing {
namespace {

constexpr int kPrompts = 64;
constexpr int kGreedy = 3;

// One prompt of each kind of length around the blocks, the others short.
int64_t Length(int prompt) {
  constexpr int64_t kLengths[] = {1, 63, 64, 65, 127, 128, 129, 200};
  return prompt < 8 ? kLengths[prompt] : 1 + prompt * 7 % 40;
}

struct Mode {
  std::string name;
  JobSetting setting;
};

JobSetting Setting(DType activations, int ranks, bool int8, CpuPath path) {
  JobSetting setting;
  setting.ranks = ranks;
  setting.activations = activations;
  setting.int8 = int8;
  setting.cpu = {.path = path, .batch_invariant = true};
  setting.slots = kPrompts;
  setting.blocks = 2 * kPrompts;
  return setting;
}

std::vector<Mode> Modes() {
  return {{"float32", Setting(DType::kF32, 1, false, BestCpuPath())},
          {"float32_int8_on_2_ranks", Setting(DType::kF32, 2, true, BestCpuPath())},
          {"bfloat16", Setting(DType::kBF16, 1, false, BestCpuPath())},
          {"bfloat16_int8_on_2_ranks", Setting(DType::kBF16, 2, true, BestCpuPath())}};
}

class BatchInvarianceTest : public ::testing::TestWithParam<Mode> {
 protected:
  // Bytes of what the job wrote: logits of all prompt positions and the tokens that follow.
  static std::string Run(bool batch, int32_t tokens_per_step_max, int32_t chunk_tokens) {
    EvalJob job;
    for (int i = 0; i < kPrompts; ++i)
      job.prompts.push_back({"p" + std::to_string(i), Prompt(i, Length(i))});
    const std::filesystem::path out =
        std::filesystem::path(::testing::TempDir()) /
        ("levin_batch_invariance_" + GetParam().name + ".safetensors");
    job.out = out.string();
    job.greedy = kGreedy;
    job.batch = batch;
    job.chunk_tokens = chunk_tokens;
    JobSetting setting = GetParam().setting;
    setting.tokens_per_step_max = tokens_per_step_max;
    const Status status = RunJob(Tiny(), job, setting);
    EXPECT_TRUE(status.ok()) << status.message();
    std::ifstream file(out, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(file)), {});
    std::filesystem::remove(out);
    return bytes;
  }
};

TEST_P(BatchInvarianceTest, SixtyFourPromptsGiveTheBitsThatTheyGiveAloneAtAnyCut) {
  const std::string alone = Run(false, 8192, 0);
  ASSERT_GT(alone.size(), 100'000u);
  EXPECT_TRUE(alone == Run(true, 300, 0)) << "a batch of 64, cut where the budget ends";
  if (GetParam().setting.ranks > 1) return;  // slow on few cores, and company is the same there
  EXPECT_TRUE(alone == Run(true, 8192, 0)) << "a batch of 64, whole prompts";
  EXPECT_TRUE(alone == Run(true, 64, 0)) << "a batch of 64 in the smallest steps";
  for (const int32_t chunk : {64, 128})
    EXPECT_TRUE(alone == Run(false, 512, chunk)) << "alone in chunks of " << chunk;
}

std::string ModeName(const ::testing::TestParamInfo<Mode>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Modes, BatchInvarianceTest, ::testing::ValuesIn(Modes()), ModeName);

// The dot instruction of bf16 rounds in its own way and is taken when a measurement says so: not in
// this mode, or two starts of a server could differ.
TEST(BatchInvariantProductsTest, TheProductsOfTheModeDoNotHangOnAMeasurement) {
  if (BestCpuPath() < CpuPath::kAvx512) {
    EXPECT_EQ(FindSimdOps(CpuPath::kAvx2, true), FindSimdOps(CpuPath::kAvx2, false));
    return;
  }
  EXPECT_EQ(FindSimdOps(CpuPath::kAvx512, true)->bf16_bf16.run, avx512::Ops()->bf16_bf16.run);
  EXPECT_EQ(FindSimdOps(CpuPath::kAvx512, true)->bf16_int8.run, avx512::Ops()->bf16_int8.run);
}

}  // namespace
}  // namespace levin::testing
