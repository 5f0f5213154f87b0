#include "common/config/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "common/config/option_units.h"

namespace levin {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename... Args>
Result<Parsed<ServeOptions>> Serve(Args... args) {
  const char* argv[] = {"levin serve", args...};
  return ParseServeOptions(sizeof...(args) + 1, argv);
}

TEST(OptionsTest, ReadsTheFlagsOfServe) {
  auto parsed = Serve("model", "--tensor-parallel-size", "4", "--port=0", "--grpc-port", "off",
                      "--max-model-len", "256k", "--cache-bytes", "2GiB", "--dtype", "float32");
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->options.worker.model, "model");
  EXPECT_EQ(parsed->options.router.model, "model");
  EXPECT_EQ(parsed->options.worker.world_size, 4);
  EXPECT_EQ(parsed->options.router.port, 0);
  EXPECT_EQ(parsed->options.router.grpc_port, -1);
  EXPECT_EQ(parsed->options.worker.max_model_len, 256000);
  EXPECT_EQ(parsed->options.worker.cache_bytes, int64_t{2} << 30);
  EXPECT_EQ(parsed->options.worker.dtype, "float32");
}

TEST(OptionsTest, TakesUnderscoresAndTheShortNamesOfOtherEngines) {
  auto parsed =
      Serve("--model", "m", "-tp", "2", "--max_model_len", "4096", "--max-running-requests", "7");
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->options.worker.world_size, 2);
  EXPECT_EQ(parsed->options.worker.max_model_len, 4096);
  EXPECT_EQ(parsed->options.worker.max_num_seqs, 7);
}

TEST(OptionsTest, PublishedLaunchLinesParse) {
  auto parsed = Serve("MiniMaxAI/MiniMax-M1-40k", "--trust-remote-code", "--quantization",
                      "experts_int8", "--dtype", "bfloat16");
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->options.worker.quantization, "experts_int8");
}

TEST(OptionsTest, AnUnknownFlagNamesTheNearestKnownOne) {
  auto parsed = Serve("m", "--tensor-paralel-size", "2");
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().message(), HasSubstr("'--tensor-paralel-size'"));
  EXPECT_THAT(parsed.error().message(), HasSubstr("'--tensor-parallel-size'"));
}

TEST(OptionsTest, AWrongValueNamesFlagValueAndWhatWasExpected) {
  auto length = Serve("m", "--max-model-len", "4q");
  ASSERT_FALSE(length);
  EXPECT_THAT(length.error().message(), HasSubstr("--max-model-len: '4q'"));
  auto dtype = Serve("m", "--dtype", "fp8");
  ASSERT_FALSE(dtype);
  EXPECT_THAT(dtype.error().message(), HasSubstr("fp8"));
  auto port = Serve("m", "--port", "65536");
  ASSERT_FALSE(port);
  EXPECT_THAT(port.error().message(), HasSubstr("65535"));
  EXPECT_FALSE(Serve());
}

TEST(OptionsTest, NamesAndKeysAreListsByRepetitionSpacesOrCommas) {
  auto parsed = Serve("m", "--served-model-name", "a", "b", "--api-key", "x,y", "--api-key", "z");
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_THAT(parsed->options.router.served_model_names, ElementsAre("a", "b"));
  EXPECT_THAT(parsed->options.router.api_keys, ElementsAre("x", "y", "z"));
}

TEST(OptionsTest, TheEnvironmentFillsInAndTheCommandLineWins) {
  setenv("LEVIN_MAX_NUM_SEQS", "9", 1);
  auto from_environment = Serve("m");
  auto from_line = Serve("m", "--max-num-seqs", "3");
  unsetenv("LEVIN_MAX_NUM_SEQS");
  ASSERT_TRUE(from_environment && from_line);
  EXPECT_EQ(from_environment->options.worker.max_num_seqs, 9);
  EXPECT_EQ(from_line->options.worker.max_num_seqs, 3);
}

TEST(OptionsTest, Float32IsBatchInvariantAndBfloat16WhenAskedFor) {
  EXPECT_EQ(Serve("m")->options.worker.batch_invariant, false);
  EXPECT_EQ(Serve("m", "--dtype", "float32")->options.worker.batch_invariant, true);
  EXPECT_EQ(Serve("m", "--batch-invariant")->options.worker.batch_invariant, true);
  EXPECT_EQ(Serve("m", "--batch_invariant=true")->options.worker.batch_invariant, true);
  EXPECT_EQ(Serve("m", "--no-batch-invariant")->options.worker.batch_invariant, false);
  const auto contradiction = Serve("m", "--dtype", "float32", "--no-batch-invariant");
  ASSERT_FALSE(contradiction);
  EXPECT_THAT(contradiction.error().message(), HasSubstr("--no-batch-invariant"));
  EXPECT_FALSE(Serve("m", "--batch-invariant", "--no-batch-invariant"));
  setenv("LEVIN_BATCH_INVARIANT", "1", 1);
  EXPECT_EQ(Serve("m")->options.worker.batch_invariant, true);
  EXPECT_EQ(Serve("m", "--no-batch-invariant")->options.worker.batch_invariant, false);
  unsetenv("LEVIN_BATCH_INVARIANT");
}

TEST(OptionsTest, AnOptionsFileHoldsOneArgumentALine) {
  const std::string path = ::testing::TempDir() + "/router.options";
  std::ofstream(path) << "--model=with space\n--group=unix:/run/engine\n--api-key=secret\n";
  const std::string flag = "--options-file=" + path;
  const char* argv[] = {"levin-router", flag.c_str(), "--port=1"};
  auto parsed = ParseRouterOptions(3, argv);
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->options.model, "with space");
  EXPECT_THAT(parsed->options.groups, ElementsAre("unix:/run/engine"));
  EXPECT_THAT(parsed->options.api_keys, ElementsAre("secret"));
  EXPECT_EQ(parsed->options.port, 1);
}

TEST(OptionsTest, ARankAboveZeroNeedsItsLeader) {
  const char* argv[] = {"levin-worker", "--model=m", "--rank=1", "--world-size=2"};
  auto parsed = ParseWorkerOptions(4, argv);
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().message(), HasSubstr("--leader"));
}

TEST(OptionsTest, ACorruptRankOutsideTheGroupIsAnErrorWithTheRange) {
  const auto worker = [](const char* rank) {
    const char* argv[] = {"levin-worker", "--model=m", "--world-size=2", rank};
    return ParseWorkerOptions(4, argv);
  };
  for (const char* good :
       {"--test-corrupt-rank=-1", "--test-corrupt-rank=0", "--test-corrupt-rank=1"}) {
    EXPECT_TRUE(worker(good)) << good;
  }
  EXPECT_FALSE(worker("--test-corrupt-rank=-2"));
  const auto beyond = worker("--test-corrupt-rank=2");
  ASSERT_FALSE(beyond);
  EXPECT_THAT(beyond.error().message(), HasSubstr("--test-corrupt-rank is 2"));
  EXPECT_THAT(beyond.error().message(), HasSubstr("0 to 1"));
  const char* argv[] = {"levin eval", "m", "--ids=i", "--out=o", "--test-corrupt-rank=1"};
  const auto eval = ParseEvalOptions(5, argv);
  ASSERT_FALSE(eval);
  EXPECT_THAT(eval.error().message(), HasSubstr("--test-corrupt-rank is 1"));
}

TEST(OptionsTest, BenchTimesAModelOrNamedKernels) {
  const auto bench = [](auto... args) {
    const char* argv[] = {"levin bench", args...};
    return ParseBenchOptions(sizeof...(args) + 1, argv);
  };
  EXPECT_EQ(bench("--kernel").value().options.which, "all");
  EXPECT_EQ(bench("--kernel", "norms").value().options.which, "norms");
  EXPECT_THAT(bench("--kernel", "tides").error().message(),
              AllOf(HasSubstr("'tides'"), HasSubstr("lightning-context")));
  EXPECT_THAT(bench("--engine", "m", "--prompt", "1", "norms").error().message(),
              AllOf(HasSubstr("'norms'"), HasSubstr("--kernel")));
}

TEST(OptionsTest, CountsAndBytesKnowTheirUnits) {
  EXPECT_EQ(*ParseCount("1M"), 1'000'000);
  EXPECT_EQ(*ParseCount("256k"), 256'000);
  EXPECT_EQ(*ParseBytes("8GiB"), int64_t{8} << 30);
  EXPECT_EQ(*ParseBytes("80GB"), 80'000'000'000);
  EXPECT_EQ(*ParseTimeMs("90"), 90'000);
  EXPECT_EQ(*ParseTimeMs("500ms"), 500);
  EXPECT_EQ(*ParseTimeMs("5m"), 300'000);
  EXPECT_FALSE(ParseTimeMs("soon"));
  EXPECT_FALSE(ParseBytes("-1"));
  EXPECT_FALSE(ParseCount("1e30"));
  EXPECT_FALSE(ParseCount(""));
}

}  // namespace
}  // namespace levin
