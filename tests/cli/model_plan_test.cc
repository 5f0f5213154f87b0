// What `levin plan` says: its flags mean what they promise, its remedies heal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <sstream>

#include "cli/plan_model.h"
#include "cli/plan_report.h"
#include "common/config/cache_cost.h"
#include "tests/common/config/m1_config.h"
#include "tests/worker/weights/model_folder.h"

namespace levin {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ModelFolder;
using testing::TempFolder;

// A folder with nothing but the released config.json.
class M1Folder final : public TempFolder {
 public:
  M1Folder() {
    testing::WriteBytes(path() / "config.json", boost::json::serialize(testing::M1Config()));
  }
};

PlanOptions Options(const std::filesystem::path& model, int64_t device_bytes) {
  PlanOptions options;
  options.model = model.string();
  options.world_size = 8;
  options.quantization = "experts_int8";
  options.device_bytes = device_bytes;
  options.gpu_memory_utilization = 0.95;
  return options;
}

ModelPlan Plan(const PlanOptions& options) {
  auto plan = MakeModelPlan(options);
  EXPECT_TRUE(plan) << plan.error().status.message();
  return plan ? *std::move(plan) : ModelPlan{};
}

TEST(ModelPlan, OfTheReleasedModelOnEightDevices) {
  M1Folder folder;
  const ModelPlan plan = Plan(Options(folder.path(), 80'000'000'000));
  EXPECT_TRUE(plan.memory.fits);
  EXPECT_EQ(plan.memory.weights.total(), 59'813'576'704);
  EXPECT_EQ(plan.memory.longest_tokens, 2'138'560);
  EXPECT_EQ(plan.checkpoint.source, CheckpointFacts::Source::kConfig);
  EXPECT_EQ(plan.checkpoint.tensors, 8243);
  EXPECT_EQ(plan.checkpoint.bytes, 912'210'767'872);
  EXPECT_EQ(Plan(Options(folder.path(), 96'000'000'000)).memory.longest_tokens, 5'107'328);
}

TEST(ModelPlan, ProposesFlagsThatServeUnderstandsAndTheAllocatorSplitsAlike) {
  M1Folder folder;
  const ModelPlan plan = Plan(Options(folder.path(), 80'000'000'000));
  std::vector<const char*> argv = {"serve", plan.options.model.c_str()};
  for (const std::string& flag : plan.flags) argv.push_back(flag.c_str());
  const auto serve = ParseServeOptions(static_cast<int>(argv.size()), argv.data());
  ASSERT_TRUE(serve) << serve.error().message();
  const WorkerOptions& worker = serve->options.worker;
  EXPECT_EQ(worker.world_size, 8);
  EXPECT_EQ(worker.quantization, "experts_int8");
  EXPECT_EQ(worker.max_model_len, 1'000'000);
  const auto split =
      SplitBudget(worker.cache_bytes, worker.world_size, MakeCacheGeometry(plan.config, 8, 2),
                  worker.max_num_seqs, worker.max_model_len);
  ASSERT_TRUE(split);
  EXPECT_EQ(*split, plan.memory.split);
}

TEST(ModelPlan, EveryRemedyHeals) {
  M1Folder folder;
  PlanOptions unquantised = Options(folder.path(), 80'000'000'000);
  unquantised.quantization = "auto";
  PlanOptions small = Options(folder.path(), 24'000'000'000);
  small.quantization = "none";
  PlanOptions long_context = Options(folder.path(), 80'000'000'000);
  long_context.max_model_len = 5'000'000;
  for (const PlanOptions& options : {unquantised, small, long_context}) {
    const ModelPlan plan = Plan(options);
    EXPECT_FALSE(plan.memory.fits);
    EXPECT_THAT(plan.flags, IsEmpty());
    ASSERT_GE(plan.remedies.size(), 3u);
    for (const Remedy& remedy : plan.remedies) {
      std::vector<std::string> words = {
          "plan",
          options.model,
          "--tensor-parallel-size=" + std::to_string(options.world_size),
          "--quantization=" + options.quantization,
          "--device-memory=" + std::to_string(options.device_bytes),
          "--gpu-memory-utilization=0.95",
          "--max-model-len=" + std::to_string(options.max_model_len)};
      // A remedy's flag takes the place of the one that was there.
      std::istringstream text(remedy.flags);
      for (std::string flag, value; text >> flag >> value;) {
        for (std::string& word : words) {
          if (word.starts_with(flag + "=")) word = flag + "=" + value;
        }
      }
      std::vector<const char*> argv;
      for (const std::string& word : words) argv.push_back(word.c_str());
      const auto healed = ParsePlanOptions(static_cast<int>(argv.size()), argv.data());
      ASSERT_TRUE(healed) << healed.error().message();
      EXPECT_TRUE(Plan(healed->options).memory.fits) << remedy.flags;
    }
    EXPECT_THAT(MisfitText(plan), HasSubstr(plan.remedies.back().flags));
  }
}

TEST(ModelPlan, TellsFlagsFromFolderByTheExitCode) {
  const auto exit_code = [](const PlanOptions& options) {
    const auto plan = MakeModelPlan(options);
    return plan ? 0 : plan.error().exit_code;
  };
  ModelFolder int8("tiny-int8");
  PlanOptions options = Options(int8.path(), 8'000'000'000);
  EXPECT_EQ(exit_code(options), 0);
  options.world_size = 7;
  EXPECT_EQ(exit_code(options), 2) << "does not divide";
  options.world_size = 2;
  options.quantization = "none";
  EXPECT_EQ(exit_code(options), 2) << "the experts are int8";
  options.quantization = "auto";
  EXPECT_EQ(Plan(options).experts, ExpertFormat::kInt8);
  options.max_model_len = 10'240'001;
  EXPECT_EQ(exit_code(options), 2) << "beyond the positions";
  options.max_model_len = 0;
  std::filesystem::remove(int8.path() / "model-00000-of-00002.safetensors");
  EXPECT_EQ(exit_code(options), 3);
  options.model = "/nowhere";
  EXPECT_EQ(exit_code(options), 3);
}

TEST(PlanReport, SaysWhenTheIndexCountsOtherwise) {
  ModelFolder folder("tiny");
  PlanOptions options = Options(folder.path(), 8'000'000'000);
  EXPECT_THAT(PlanText(Plan(options)), HasSubstr("1,846,912 bytes, as the index says"));
  const std::filesystem::path path = folder.path() / "model.safetensors.index.json";
  boost::json::value index = boost::json::parse(testing::ReadBytes(path));
  index.at("metadata").as_object()["total_size"] = 1'846'900;
  testing::WriteBytes(path, boost::json::serialize(index));
  const ModelPlan plan = Plan(options);
  EXPECT_THAT(PlanText(plan), HasSubstr("the index says 1,846,900, a difference of -12"));
  const boost::json::value json = boost::json::parse(PlanJson(plan));
  EXPECT_FALSE(json.at("checkpoint").at("index_agrees").as_bool());
}

TEST(PlanReport, TheCommandLineCanBePasted) {
  M1Folder folder;
  ModelPlan plan = Plan(Options(folder.path(), 80'000'000'000));
  plan.options.model = "/models/it's M1";
  EXPECT_THAT(PlanText(plan), HasSubstr("levin serve '/models/it'\\''s M1' --tensor-parallel-size 8"
                                        " --quantization experts_int8 --dtype bfloat16"));
}

}  // namespace
}  // namespace levin
