// A whole job through engine, plans, ranks and network, against the known values of `tiny`; the
// ranks are threads here. The full matrix runs on real processes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "tests/worker/engine/wires.h"
#include "tests/worker/model/network_golden.h"
#include "worker/backend/cpu/cpu_backend.h"
#include "worker/comm/local_collective.h"
#include "worker/engine/engine.h"
#include "worker/engine/follower.h"
#include "worker/eval/eval_collector.h"
#include "worker/eval/eval_feeder.h"
#include "worker/model/hybrid_model.h"
#include "worker/weights/weight_loader.h"

namespace levin {
namespace {

namespace fs = std::filesystem;
using testing::NetworkGolden;
using testing::Wire;
using testing::WireToFollowers;
using testing::WireToLeader;

constexpr float kBound = 1e-4f;

SchedulerOptions MakeOptions(const EvalJob& job, const ModelConfig& config) {
  SchedulerOptions options;
  options.max_num_seqs = options.slots = 3;
  options.blocks = 24;
  options.tokens_per_step_max = 512;
  options.max_model_len = 1024;
  options.vocab_size = config.vocab;
  ApplyEvalJob(job, options);
  return options;
}

// One rank as its process builds it.
struct Rank {
  Rank(const fs::path& dir, const ModelConfig& config, const EvalJob& job, Collective& collective) {
    const SchedulerOptions options = MakeOptions(job, config);
    auto weights =
        LoadWeights(dir, config, {.rank = collective.rank(), .ranks = collective.ranks()});
    CHECK(weights.has_value(), weights.error().message());
    auto built = HybridModel::Create(config, *std::move(weights), MakeCpuBackend({}), collective,
                                     {.activations = DType::kF32,
                                      .slots = static_cast<int32_t>(options.slots),
                                      .blocks = options.blocks,
                                      .tokens_per_step_max = options.step_tokens_max(),
                                      .rows_per_step_max = options.rows_max()});
    CHECK(built.has_value(), built.error().message());
    model = *std::move(built);
    collector = std::make_unique<EvalCollector>(job, config, collective, model->states());
    model->set_probe(collector.get());
    const PlanLimits limits{.slots = options.slots,
                            .blocks = options.blocks,
                            .rows_max = options.rows_max(),
                            .tokens_max = options.step_tokens_max(),
                            .vocab_size = config.vocab};
    executor = std::make_unique<RankExecutor>(limits, *model, std::vector<bool>(), collector.get());
  }

  std::unique_ptr<HybridModel> model;
  std::unique_ptr<EvalCollector> collector;
  std::unique_ptr<RankExecutor> executor;
};

Status RunJob(const fs::path& dir, const EvalJob& job, int ranks) {
  const ModelConfig config = *LoadModelConfig(dir);
  auto collectives = MakeLocalCollectives(ranks);
  std::vector<std::unique_ptr<Rank>> group;
  std::vector<std::unique_ptr<Wire>> wires;
  for (auto& collective : collectives)
    group.push_back(std::make_unique<Rank>(dir, config, job, *collective));
  for (int rank = 1; rank < ranks; ++rank) wires.push_back(std::make_unique<Wire>());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < wires.size(); ++i)
    threads.emplace_back([&, i] {
      WireToLeader leader(*wires[i]);
      const Status status = Follower(*group[i + 1]->executor, leader).Run();
      EXPECT_TRUE(status.ok()) << status.message();
    });

  Mailbox<RouterCommand> inbox(64);
  SystemClock clock;
  EvalFeeder feeder(job, inbox);
  WireToFollowers link(wires);
  Engine engine(EngineOptions{}, Scheduler(MakeOptions(job, config)), *group[0]->executor,
                ranks > 1 ? &link : nullptr, feeder, inbox, clock);
  Status status = feeder.Start();
  if (status.ok()) status = engine.Run();
  for (auto& wire : wires) wire->plans.Close();
  for (std::thread& thread : threads) thread.join();
  if (status.ok()) status = feeder.status();
  return status.ok() ? group[0]->collector->Write(feeder.greedy()) : status;
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
