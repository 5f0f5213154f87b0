// A whole job through engine, plans, ranks and network, against the known values of `tiny`; the
// ranks are threads here. The full matrix runs on real processes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/worker/eval/job_group.h"
#include "tests/worker/model/network_golden.h"

namespace levin {
namespace {

namespace fs = std::filesystem;
using testing::NetworkGolden;

constexpr float kBound = 1e-4f;

Status RunJob(const fs::path& dir, const EvalJob& job, int ranks) {
  return testing::RunJob(dir, job, {.ranks = ranks});
}

class EvalGoldenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const fs::path& dir : testing::NetworkModels())
      if (dir.filename() == "tiny") tiny_ = dir;
    ASSERT_FALSE(tiny_.empty());
    golden_ = std::make_unique<NetworkGolden>(tiny_);
    out_ = fs::path(::testing::TempDir()) / "levin_eval_test.safetensors";
  }
  void TearDown() override { fs::remove(out_); }

  EvalJob Job(const std::vector<std::string>& names) const {
    EvalJob job;
    job.out = out_.string();
    for (const testing::GoldenCase& one : golden_->cases())
      if (std::find(names.begin(), names.end(), one.name) != names.end())
        job.prompts.push_back({one.name, one.prompt});
    CHECK_EQ(job.prompts.size(), names.size());
    return job;
  }

  template <typename T>
  std::vector<T> Written(const std::string& name) const {
    const Result<SafetensorsFile> file = SafetensorsFile::Open(out_);
    CHECK(file.has_value());
    const StoredTensor* tensor = file->Find(name);
    CHECK(tensor != nullptr, name);
    std::vector<T> values(static_cast<size_t>(tensor->bytes) / sizeof(T));
    CHECK(file->Read(*tensor, 0, std::as_writable_bytes(std::span(values))).ok());
    return values;
  }

  // The golden rows are the last ones of what was written.
  void ExpectNear(const std::string& name, float bound) const {
    const std::vector<float> got = Written<float>(name), want = golden_->Floats(name);
    ASSERT_GE(got.size(), want.size()) << name;
    float worst = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      const float difference = std::abs(got[got.size() - want.size() + i] - want[i]);
      if (!(difference <= worst)) worst = difference;
    }
    EXPECT_LE(worst, bound) << name;
  }
  void ExpectNearRelative(const std::string& name) const {
    float largest = 0;
    for (float value : golden_->Floats(name)) largest = std::max(largest, std::abs(value));
    ExpectNear(name, kBound * largest);
  }
  void ExpectGreedy(const std::string& name) const {
    for (const testing::GoldenCase& one : golden_->cases()) {
      if (one.name != name) continue;
      const std::vector<int64_t> got = Written<int64_t>(name + ".greedy");
      const int checked = std::min(one.safe, static_cast<int>(got.size()));
      ASSERT_GT(checked, 0);
      for (int i = 0; i < checked; ++i) EXPECT_EQ(got[i], one.greedy[i]) << name << " token " << i;
    }
  }

  fs::path tiny_, out_;
  std::unique_ptr<NetworkGolden> golden_;
};

TEST_F(EvalGoldenTest, LogitsAndGreedyTokensAreTheKnownOnesAtEveryChunkSizeAndRankCount) {
  const std::vector<std::string> names = {"bf16.len7", "bf16.len64", "bf16.len257"};
  for (int ranks : {1, 2, 4}) {
    for (int32_t chunk : ranks == 2 ? std::vector{0, 1, 7, 64} : std::vector{0, 7}) {
      for (bool batch : ranks == 2 ? std::vector{false, true} : std::vector{true}) {
        SCOPED_TRACE(std::to_string(ranks) + " ranks, chunk " + std::to_string(chunk) +
                     (batch ? ", batch" : ""));
        EvalJob job = Job(names);
        job.greedy = 16;
        job.chunk_tokens = chunk;
        job.batch = batch;
        const Status status = RunJob(tiny_, job, ranks);
        ASSERT_TRUE(status.ok()) << status.message();
        for (const std::string& name : names) {
          ExpectNear(name + ".logits", kBound);
          ExpectGreedy(name);
        }
      }
    }
  }
}

TEST_F(EvalGoldenTest, StatesOfAllHeadsComeFromAllRanks) {
  for (int ranks : {1, 2}) {
    EvalJob job = Job({"bf16.len64"});
    job.states = true;
    job.greedy = 3;  // feeds further tokens: the state is the one after the prompt
    const Status status = RunJob(tiny_, job, ranks);
    ASSERT_TRUE(status.ok()) << status.message();
    for (int layer : {0, 1, 2, 4, 5, 6})
      ExpectNearRelative("bf16.len64.state." + std::to_string(layer));
  }
}

TEST_F(EvalGoldenTest, TracesHaveTheKnownValuesAndShapes) {
  EvalJob job = Job({"bf16.len7"});
  job.trace = true;
  job.chunk_tokens = 3;
  const Status status = RunJob(tiny_, job, 2);
  ASSERT_TRUE(status.ok()) << status.message();
  const std::string name = "bf16.len7.trace.";
  for (const char* what : {"after_attention", "after_mlp", "router_logits", "final_norm"})
    ExpectNearRelative(name + what);
  EXPECT_EQ(Written<int64_t>(name + "experts"), golden_->Integers(name + "experts"));
  const Result<SafetensorsFile> file = SafetensorsFile::Open(out_);
  for (const char* what : {"after_attention", "router_logits", "experts", "final_norm"})
    EXPECT_EQ(file->Find(name + what)->shape, golden_->ShapeOf(name + what)) << what;
}

TEST_F(EvalGoldenTest, APromptThatDoesNotFitIsNamed) {
  EvalJob job = Job({"bf16.len7", "bf16.len64"});
  job.prompts[1].ids.assign(2000, 1);
  const Status status = RunJob(tiny_, job, 1);
  EXPECT_EQ(status.reason(), "CONTEXT_LENGTH_EXCEEDED");
  EXPECT_NE(status.message().find("bf16.len64"), std::string::npos);
}

}  // namespace
}  // namespace levin
