// Long prompts through the product: `levin eval` with its worker process, a prompt in chunks, and
// the logits of the last positions beside a program in double. A million tokens run at night
// (CONTRIBUTING.md); the same code with shorter prompts runs always.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/system/long_model.h"
#include "worker/weights/safetensors.h"

namespace levin::testing {
namespace {

constexpr int64_t kLast = 4;
constexpr double kBound = 1e-4;

class LongContextTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("levin_long_context_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    model_.Write(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // [kLast or fewer][vocabulary] logits of the last positions.
  std::vector<float> Run(const std::vector<int32_t>& prompt, const std::string& flags) {
    std::ofstream ids(folder_ / "ids.json");
    ids << "{\"a\": [";
    for (size_t i = 0; i < prompt.size(); ++i) ids << (i == 0 ? "" : ",") << prompt[i];
    ids << "]}";
    ids.close();
    const std::string out = (folder_ / "out.safetensors").string();
    const std::string log = (folder_ / "log").string();
    const std::string command = std::string(LEVIN_BINARY_DIR) + "/bin/levin eval " +
                                folder_.string() + " --ids " + (folder_ / "ids.json").string() +
                                " --out " + out + " --dtype float32 --last " +
                                std::to_string(kLast) + " " + flags + " >" + log + " 2>&1";
    const int code = std::system(command.c_str());
    std::stringstream said;
    said << std::ifstream(log).rdbuf();
    EXPECT_EQ(0, code) << command << '\n' << said.str();
    if (code != 0) return {};
    const Result<SafetensorsFile> file = SafetensorsFile::Open(out);
    CHECK(file.has_value(), file.error().message());
    const StoredTensor* logits = file->Find("a.logits");
    CHECK(logits != nullptr);
    std::vector<float> values(static_cast<size_t>(logits->bytes) / sizeof(float));
    CHECK(file->Read(*logits, 0, std::as_writable_bytes(std::span(values))).ok());
    return values;
  }

  // Largest difference between the run and the program in double.
  double Difference(int64_t tokens, const std::string& flags) {
    const std::vector<int32_t> prompt = LongModel::Prompt(tokens);
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<float> got = Run(prompt, flags);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const LongAnswer known = AnswerInDouble(model_, prompt, kLast);
    EXPECT_GT(known.router_margin, 1e-4) << "a routing decision hangs on rounding";
    EXPECT_EQ(got.size(), known.logits.size() * LongModel::kVocab);
    if (got.size() != known.logits.size() * LongModel::kVocab) return INFINITY;
    double worst = 0, largest = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      const double value = known.logits[i / LongModel::kVocab][i % LongModel::kVocab];
      const double difference = std::abs(got[i] - value);
      if (!(difference <= worst)) worst = std::isnan(difference) ? INFINITY : difference;
      largest = std::max(largest, std::abs(value));
    }
    std::printf(
        "  %ld tokens: max |dlogit| %.2g of %.3g; the last token attends to %.0f tokens, %.0f %% "
        "in the first half; levin eval %.1f s\n",
        static_cast<long>(tokens), worst, largest, known.tokens_seen,
        100 * known.weight_of_first_half, took.count());
    std::fflush(stdout);
    if (tokens > 1000) {
      EXPECT_GT(known.weight_of_first_half, 0.2) << "the test would not see a lost beginning";
      EXPECT_GT(known.tokens_seen, 2);
    }
    return worst;
  }

  const LongModel model_{20261201};
  std::filesystem::path folder_;
};

TEST_F(LongContextTest, LogitsOfChunkedPromptsAreThoseOfTheDefinition) {
  for (const int64_t tokens : {1, 3, 64, 65, 4096, 5003})
    EXPECT_LE(Difference(tokens, "--max-num-batched-tokens 256"), kBound) << tokens;
}

int64_t PeakBytes() {
  rusage usage{};
  CHECK_EQ(0, getrusage(RUSAGE_CHILDREN, &usage));  // of the largest process that has ended
  return int64_t{usage.ru_maxrss} * 1024;
}

// What grows with the prompt is its cache: keys and values of 16 floats a token, and its ids. A
// buffer of the forward pass that grew too would take more than a kilobyte a token.
TEST_F(LongContextTest, DISABLED_AMillionTokensAreThoseOfTheDefinitionInBoundedMemory) {
  constexpr int64_t kShort = int64_t{1} << 16, kLong = int64_t{1} << 20;
  EXPECT_LE(Difference(kShort, ""), kBound);
  const int64_t before = PeakBytes();
  EXPECT_LE(Difference(kLong, ""), kBound);
  const int64_t grown = PeakBytes() - before;
  std::printf("  peak of the largest process: %.0f MB at %ld tokens, %.0f MB at %ld\n",
              static_cast<double>(before) / 1e6, static_cast<long>(kShort),
              static_cast<double>(before + grown) / 1e6, static_cast<long>(kLong));
  constexpr int64_t kKvBytes = 2 * LongModel::kDim * 4, kIdBytes = 128;
  EXPECT_LE(grown, (kLong - kShort) * (kKvBytes + kIdBytes));
}

}  // namespace
}  // namespace levin::testing
