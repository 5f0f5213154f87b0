// What `levin plan` promises is what a group takes: the allocator's own code, started with the
// proposed flags, on every model here at every degree of parallelism that it allows.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/plan_model.h"
#include "tests/worker/weights/model_folder.h"
#include "worker/process/cache_plan.h"
#include "worker/weights/placement.h"
#include "worker/weights/weight_layout.h"

namespace levin {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> Models() {
  std::vector<fs::path> models = {fs::path(LEVIN_SOURCE_DIR) / "models/levin-demo"};
  for (const auto& dir : testing::GoldenDirs("network")) {
    for (const auto& entry : fs::directory_iterator(dir)) {
      if (entry.is_directory()) models.push_back(entry.path());
    }
  }
  return models;
}

// The proposed command line, read as serve reads it.
WorkerOptions Started(const ModelPlan& plan) {
  std::vector<const char*> argv = {"serve", plan.options.model.c_str()};
  for (const std::string& flag : plan.flags) argv.push_back(flag.c_str());
  const auto serve = ParseServeOptions(static_cast<int>(argv.size()), argv.data());
  EXPECT_TRUE(serve) << serve.error().message();
  return serve ? serve->options.worker : WorkerOptions{};
}

// Rank 0 is the largest.
void ExpectTheLoadersOwn(const ModelPlan& plan) {
  for (int rank = 0; rank < plan.options.world_size; ++rank) {
    const auto weights =
        AllocateWeights(plan.config, {rank, plan.options.world_size}, plan.experts);
    ASSERT_TRUE(weights) << weights.error().message();
    EXPECT_LE(weights->bytes, plan.memory.weights.total());
    if (rank == 0) {
      EXPECT_EQ(weights->bytes, plan.memory.weights.total());
    }
  }
}

void ExpectTheAllocatorsOwn(const ModelPlan& plan) {
  const WorkerOptions worker = Started(plan);
  EXPECT_EQ(ExpertFormatFor(plan.config, worker.quantization == "experts_int8"), plan.experts);
  const OrExit<CachePlan> cache = PlanCache(worker, plan.config, 0);
  ASSERT_TRUE(cache) << cache.error().status.message();
  EXPECT_EQ(cache->geometry, plan.memory.geometry);
  EXPECT_EQ(cache->split, plan.memory.split);
  EXPECT_EQ(cache->max_model_len, plan.memory.max_model_len);
  // Unasked, the same bytes give the same: no flag but the bytes is needed.
  if (plan.options.max_model_len > 0) return;
  WorkerOptions unasked = worker;
  unasked.max_model_len = 0;
  unasked.max_num_seqs = plan.options.max_num_seqs;
  const OrExit<CachePlan> alone = PlanCache(unasked, plan.config, 0);
  ASSERT_TRUE(alone) << alone.error().status.message();
  EXPECT_EQ(alone->split, plan.memory.split);
  EXPECT_EQ(alone->max_model_len, plan.memory.max_model_len);
}

ModelPlan Plan(const PlanOptions& options) {
  auto plan = MakeModelPlan(options);
  EXPECT_TRUE(plan) << plan.error().status.message();
  return plan ? *std::move(plan) : ModelPlan{};
}

// Every device from the least that works to one that holds all sequences at full length.
int Compare(PlanOptions options) {
  int compared = 0;
  options.device_bytes = 1;
  options.gpu_memory_utilization = 1;
  options.overhead_bytes = 1'000'000;
  ExpectTheLoadersOwn(Plan(options));
  for (const char* dtype : {"bfloat16", "float32"}) {
    for (int64_t length : {0, 70, 1024}) {
      options.dtype = dtype;
      options.max_model_len = length;
      options.device_bytes = 1;
      const int64_t least = Plan(options).memory.needed_bytes;
      for (int64_t more : {0, 300'000, 5'000'001, 64'000'000}) {
        options.device_bytes = least + more;
        const ModelPlan plan = Plan(options);
        EXPECT_TRUE(plan.memory.fits);
        SCOPED_TRACE(options.model + " ranks " + std::to_string(options.world_size) + " " +
                     options.quantization + " " + dtype + " length " + std::to_string(length) +
                     " bytes more " + std::to_string(more));
        ExpectTheAllocatorsOwn(plan);
        ++compared;
      }
    }
  }
  return compared;
}

TEST(PlanAndAllocator, AgreeToTheByteAndToTheToken) {
  int compared = 0;
  for (const fs::path& model : Models()) {
    const Result<ModelConfig> config = LoadModelConfig(model);
    ASSERT_TRUE(config) << config.error().message();
    for (int ranks : {1, 2, 4}) {
      if (!CheckTensorParallel(*config, ranks).ok()) continue;
      for (const char* quantization : {"auto", "experts_int8"}) {
        PlanOptions options;
        options.model = model.string();
        options.world_size = ranks;
        options.quantization = quantization;
        compared += Compare(options);
      }
    }
  }
  EXPECT_GE(compared, 7 * 3 * 2 * 24);
}

}  // namespace
}  // namespace levin
