// Loading by several threads: same weights and digest, few open files, little memory beside them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "tests/worker/weights/model_folder.h"
#include "worker/weights/read_plan.h"
#include "worker/weights/weight_loader.h"

namespace levin {
namespace {

namespace fs = std::filesystem;
using testing::GoldenModel;
using ::testing::HasSubstr;
using testing::ModelFolder;
using testing::RawTensor;

ModelConfig ConfigOf(const fs::path& dir) { return *LoadModelConfig(dir); }

std::string AllBytes(const ModelWeights& weights) {
  std::string bytes;
  for (const Buffer& buffer : weights.buffers) {
    bytes.append(reinterpret_cast<const char*>(buffer.data()), static_cast<size_t>(buffer.bytes()));
  }
  return bytes;
}

TEST(LoaderThreads, AnyNumberOfThemLoadsTheSame) {
  for (const char* model : {"tiny", "tiny-native-stacked", "tiny-int8", "deep"}) {
    const fs::path dir = GoldenModel(model);
    for (bool int8 : {false, true}) {
      LoadOptions options{.rank = 1, .ranks = 2, .quantize_experts_int8 = int8};
      options.threads = 1;
      const auto one = LoadWeights(dir, ConfigOf(dir), options);
      ASSERT_TRUE(one) << one.error().message();
      for (int threads : {0, 2, 3, 16}) {
        options.threads = threads;
        const auto many = LoadWeights(dir, ConfigOf(dir), options);
        ASSERT_TRUE(many) << many.error().message();
        EXPECT_EQ(many->digest, one->digest) << model << " threads " << threads;
        EXPECT_EQ(AllBytes(*many), AllBytes(*one)) << model << " threads " << threads;
      }
    }
  }
}

TEST(LoaderThreads, ProgressGrowsUpToTheTotal) {
  const fs::path dir = GoldenModel("deep");
  for (int threads : {1, 2, 8}) {
    int64_t last = 0;
    int64_t total = 0;
    const auto weights = LoadWeights(dir, ConfigOf(dir),
                                     {.progress =
                                          [&](int64_t done, int64_t all) {
                                            EXPECT_GT(done, last);
                                            EXPECT_LE(done, all);
                                            last = done;
                                            total = all;
                                          },
                                      .threads = threads});
    ASSERT_TRUE(weights);
    EXPECT_EQ(last, total);
    EXPECT_EQ(total, 9'389'248) << "total_size of the index";
  }
}

// One tensor a file, and fewer descriptors than files.
TEST(LoaderThreads, AModelOfMoreFilesThanDescriptorsLoads) {
  const fs::path golden = GoldenModel("tiny");
  testing::TempFolder folder;
  fs::copy(golden / "config.json", folder.path() / "config.json");
  boost::json::object map;
  int files = 0;
  for (const RawTensor& tensor : testing::AllTensors(golden)) {
    const std::string name = "part-" + std::to_string(files++) + ".safetensors";
    testing::WriteBytes(folder.path() / name, testing::RawFile({tensor}));
    map[tensor.name] = name;
  }
  testing::WriteBytes(folder.path() / "model.safetensors.index.json",
                      boost::json::serialize(boost::json::object{{"weight_map", map}}));
  rlimit limit;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit few = limit;
  few.rlim_cur = 32;
  ASSERT_GT(files, 100);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto weights = LoadWeights(folder.path(), ConfigOf(folder.path()), {.threads = 4});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_TRUE(weights) << weights.error().message();
  EXPECT_EQ(weights->digest, LoadWeights(golden, ConfigOf(golden), {})->digest);
}

TEST(LoaderThreads, TheEarliestOfSeveralErrorsIsTold) {
  ModelFolder folder("tiny");
  const auto spoil = [](std::vector<RawTensor>& tensors, const std::string& name) {
    std::string& bytes = testing::Named(tensors, name).bytes;
    bytes.replace(bytes.size() - 2, 2, "\xff\x7f");  // NaN
  };
  folder.Rewrite([&](std::vector<RawTensor>& tensors) {
    // In the file's order the norm of layer 2 comes first.
    std::stable_sort(tensors.begin(), tensors.end(),
                     [](const RawTensor& a, const RawTensor& b) { return a.name < b.name; });
    for (const char* layer : {"2", "5", "7"}) {
      spoil(tensors, "model.layers." + std::string(layer) + ".input_layernorm.weight");
    }
  });
  for (int round = 0; round < 20; ++round) {
    const auto weights =
        LoadWeights(folder.path(), ConfigOf(folder.path()), {.threads = 1 + round % 4});
    ASSERT_FALSE(weights);
    EXPECT_THAT(weights.error().message(), HasSubstr("model.layers.2.input_layernorm.weight"));
  }
}

TEST(PlanReads, TouchesEveryByteOfTheFilesOnceAndInOrder) {
  for (const char* model : {"tiny", "tiny-native-stacked", "tiny-int8", "odd-heads"}) {
    const fs::path dir = GoldenModel(model);
    const ModelConfig config = ConfigOf(dir);
    const auto checkpoint = Checkpoint::Open(dir);
    ASSERT_TRUE(checkpoint);
    const auto needed =
        NeededTensors(config, [&](std::string_view name) { return checkpoint->Has(name); });
    for (int rank : {0, 1}) {
      const ExpertFormat experts = ExpertFormatFor(config, true);
      const auto weights = AllocateWeights(config, {rank, 2}, experts);
      ASSERT_TRUE(weights);
      const SafetensorsFile* file = nullptr;
      std::set<const SafetensorsFile*> seen;
      int64_t end = 0;
      for (const ReadPiece& piece : PlanReads(*checkpoint, needed, config, {rank, 2}, *weights)) {
        if (piece.file != file) {
          EXPECT_TRUE(seen.insert(piece.file).second) << "one file after the other";
          file = piece.file;
          end = 0;
        }
        EXPECT_GE(piece.tensor->data_begin + piece.offset, end) << piece.tensor->name;
        end = piece.tensor->data_begin + piece.offset + piece.bytes;
        EXPECT_LE(piece.offset + piece.bytes, piece.tensor->bytes);
        EXPECT_LE(piece.bytes, 2 * kPieceBytes);
      }
    }
  }
}

// VmHWM in bytes since the last reset; 0 where the system does not tell.
int64_t HighWater() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) << 10;
  }
  return 0;
}

// 16 experts of 3 x 4 MiB as bf16: 192 MiB that must never be there beside their int8 form.
TEST(LoaderThreads, QuantisingNeedsLittleMoreMemoryThanTheInt8Weights) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "SKIPPED: sanitizers keep memory of their own";
#endif
  testing::TempFolder folder;
  boost::json::object json =
      boost::json::parse(testing::ReadBytes(GoldenModel("tiny") / "config.json")).as_object();
  json["num_hidden_layers"] = 1;
  json["attn_type_list"] = boost::json::array{0};
  json["hidden_size"] = 1024;
  json["intermediate_size"] = 2048;
  json["num_local_experts"] = 16;
  testing::WriteBytes(folder.path() / "config.json", boost::json::serialize(json));
  const ModelConfig config = ConfigOf(folder.path());
  boost::json::object header;
  int64_t end = 0;
  for (const NeededTensor& tensor : NeededTensors(config, [](std::string_view) { return false; })) {
    int64_t bytes = 2;
    for (int64_t dim : tensor.shape) bytes *= dim;
    header[tensor.name] = {{"dtype", "BF16"},
                           {"shape", boost::json::value_from(tensor.shape)},
                           {"data_offsets", {end, end + bytes}}};
    end += bytes;
  }
  const fs::path path = folder.path() / "model.safetensors";
  testing::WriteBytes(path, testing::RawFile(boost::json::serialize(header), ""));
  fs::resize_file(path, fs::file_size(path) + static_cast<uintmax_t>(end));
  ASSERT_GT(end, 192 << 20);

  if (!(std::ofstream("/proc/self/clear_refs") << "5" << std::flush)) {
    GTEST_SKIP() << "SKIPPED: the high-water mark cannot be reset here";
  }
  const int64_t before = HighWater();
  const auto weights = LoadWeights(folder.path(), config, {.quantize_experts_int8 = true});
  ASSERT_TRUE(weights) << weights.error().message();
  const int64_t grown = HighWater() - before;
  EXPECT_GE(grown, weights->bytes / 2) << "the mark moves at all";
  EXPECT_LT(grown, weights->bytes + (24 << 20)) << "two staging buffers of 4 MiB, headers, stacks";
}

}  // namespace
}  // namespace levin
