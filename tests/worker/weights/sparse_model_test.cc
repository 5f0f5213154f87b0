// The released model's real shapes as files of holes: names, shapes, offsets and sums of 912 GB
// without the data, and reads beyond 4 GiB where a 32-bit offset would wrap.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>

#include "tests/common/config/m1_config.h"
#include "tests/worker/weights/model_folder.h"
#include "worker/tensor/bf16.h"
#include "worker/weights/checkpoint.h"
#include "worker/weights/checkpoint_facts.h"
#include "worker/weights/needed_tensors.h"
#include "worker/weights/weight_loader.h"

namespace levin {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using testing::TempFolder;

constexpr int64_t kGiB = int64_t{1} << 30;

struct Entry {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  int64_t bytes() const {
    int64_t bytes = dtype == "F32" ? 4 : 2;
    for (int64_t dim : shape) bytes *= dim;
    return bytes;
  }
};

// As published: gates F32, all else BF16 (model.md 6.3).
Entry EntryOf(const NeededTensor& tensor) {
  return {tensor.name, tensor.piece == WeightPiece::kGate ? "F32" : "BF16", tensor.shape};
}

// A safetensors file whose data is a hole. False where the file system has no room for its length.
bool WriteHole(const fs::path& path, const std::vector<Entry>& entries) {
  json::object header;
  int64_t end = 0;
  for (const Entry& entry : entries) {
    header[entry.name] = {{"dtype", entry.dtype},
                          {"shape", json::value_from(entry.shape)},
                          {"data_offsets", {end, end + entry.bytes()}}};
    end += entry.bytes();
  }
  testing::WriteBytes(path, testing::RawFile(json::serialize(header), ""));
  std::error_code error;
  fs::resize_file(path, fs::file_size(path) + static_cast<uintmax_t>(end), error);
  return !error;
}

int64_t BlocksOnDisk(const fs::path& dir) {
  int64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(dir)) {
    struct stat facts;
    if (::stat(entry.path().c_str(), &facts) == 0) bytes += facts.st_blocks * 512;
  }
  return bytes;
}

void Plant(const fs::path& path, int64_t offset, std::string_view bytes) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(offset);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(file.good());
}

std::string Bf16Bytes(std::initializer_list<float> values) {
  std::string bytes;
  for (float value : values) {
    const uint16_t bits = FloatToBf16(value);
    bytes.append(reinterpret_cast<const char*>(&bits), 2);
  }
  return bytes;
}

json::object SmallerM1(int layers, int experts) {
  json::object config = testing::M1Config();
  json::array kinds;
  for (int layer = 0; layer < layers; ++layer) kinds.push_back(0);
  config["attn_type_list"] = kinds;
  config["num_hidden_layers"] = layers;
  config["num_local_experts"] = experts;
  return config;
}

ModelConfig WriteConfig(const fs::path& dir, const json::object& config) {
  testing::WriteBytes(dir / "config.json", json::serialize(config));
  return *LoadModelConfig(dir);
}

TEST(SparseModel, TheWholeReleasedModelIsCheckedWithoutItsData) {
  TempFolder folder;
  const ModelConfig config = WriteConfig(folder.path(), testing::M1Config());
  const auto needed = NeededTensors(config, [](std::string_view) { return false; });
  // Filled up to 4.41 GB, as the largest published shard, and numbered as they are.
  std::vector<std::vector<Entry>> shards(1);
  int64_t in_shard = 0;
  for (const NeededTensor& tensor : needed) {
    const Entry entry = EntryOf(tensor);
    if (in_shard + entry.bytes() > 4'410'000'000) {
      shards.emplace_back();
      in_shard = 0;
    }
    in_shard += entry.bytes();
    shards.back().push_back(entry);
  }
  json::object map;
  for (size_t i = 0; i < shards.size(); ++i) {
    char name[64];
    std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i, shards.size());
    if (!WriteHole(folder.path() / name, shards[i])) {
      GTEST_SKIP() << "SKIPPED: no files of 4 GB with holes in " << folder.path();
    }
    for (const Entry& entry : shards[i]) map[entry.name] = name;
  }
  testing::WriteBytes(folder.path() / "model.safetensors.index.json",
                      json::serialize(json::object{{"metadata", {{"total_size", 912'210'767'872}}},
                                                   {"weight_map", map}}));

  const auto facts = InspectCheckpoint(folder.path(), config);
  ASSERT_TRUE(facts) << facts.error().message();
  EXPECT_EQ(facts->source, CheckpointFacts::Source::kHeaders);
  EXPECT_EQ(facts->tensors, 8243);
  EXPECT_EQ(facts->files, static_cast<int64_t>(shards.size()));
  EXPECT_EQ(facts->bytes, 912'210'767'872);
  EXPECT_LT(BlocksOnDisk(folder.path()), 64 << 20) << "no data was written";

  // A slice of the last tensor of every shard that ends beyond 4 GiB.
  const auto checkpoint = Checkpoint::Open(folder.path());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  int beyond = 0;
  for (const SafetensorsFile& file : checkpoint->files()) {
    const StoredTensor& last = file.tensors().back();
    if (last.data_begin + last.bytes < 4 * kGiB) continue;
    ++beyond;
    const std::string planted = file.path().filename().string();
    const auto size = static_cast<int64_t>(planted.size());
    Plant(file.path(), last.data_begin + last.bytes - size, planted);
    const auto reopened = SafetensorsFile::Open(file.path());
    ASSERT_TRUE(reopened);
    std::string read(planted.size(), '?');
    const Status status = reopened->Read(*reopened->Find(last.name), last.bytes - size,
                                         std::as_writable_bytes(std::span(read)));
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(read, planted);
  }
  EXPECT_GE(beyond, 150);
}

// One file: embedding and head come first, so that everything else lies beyond 4 GiB.
TEST(SparseModel, ARankLoadsItsShareFromBeyond4GiB) {
  TempFolder folder;
  const ModelConfig config = WriteConfig(folder.path(), SmallerM1(1, 2));
  const auto needed = NeededTensors(config, [](std::string_view) { return false; });
  std::vector<Entry> entries;
  for (const NeededTensor& tensor : needed) entries.push_back(EntryOf(tensor));
  std::stable_partition(entries.begin(), entries.end(), [](const Entry& entry) {
    return entry.name == "model.embed_tokens.weight" || entry.name == "lm_head.weight";
  });
  const fs::path path = folder.path() / "model.safetensors";
  if (!WriteHole(path, entries)) GTEST_SKIP() << "SKIPPED: no files of 5 GB with holes";

  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file) << file.error().message();
  const auto at = [&](const char* name, int64_t row, int64_t column) {
    const StoredTensor& tensor = *file->Find(name);
    return tensor.data_begin + (row * tensor.shape[1] + column) * 2;
  };
  constexpr char kW1[] = "model.layers.0.block_sparse_moe.experts.1.w1.weight";
  constexpr char kW2[] = "model.layers.0.block_sparse_moe.experts.1.w2.weight";
  EXPECT_GT(at(kW1, 0, 0), 4 * kGiB);
  EXPECT_GT(at(kW2, 0, 0), 4 * kGiB);
  // Of rank 7: the last row of the head, its last w1 row, and in w2 a row whose largest value lies
  // with rank 0.
  Plant(path, at("lm_head.weight", 200063, 6140), Bf16Bytes({1, 2, 3, 4}));
  Plant(path, at(kW1, 9215, 6142), Bf16Bytes({-127, 64}));
  Plant(path, at(kW2, 6143, 0), Bf16Bytes({254}));
  Plant(path, at(kW2, 6143, 9215), Bf16Bytes({-100}));

  const auto weights =
      LoadWeights(folder.path(), config, {.rank = 7, .ranks = 8, .quantize_experts_int8 = true});
  ASSERT_TRUE(weights) << weights.error().message();
  EXPECT_EQ(weights->vocab_first, 7 * 25008);
  const uint16_t* head = weights->head.Rows(25007, 1).as<uint16_t>();
  EXPECT_EQ(Bf16ToFloat(head[6140]), 1);
  EXPECT_EQ(Bf16ToFloat(head[6143]), 4);
  const LayerWeights& layer = weights->layers[0];
  const int8_t* w1 = layer.w13.Rows(1, 1).as<int8_t>() + int64_t{1151} * 6144;
  EXPECT_EQ(w1[6141], 0);
  EXPECT_EQ(w1[6142], -127);
  EXPECT_EQ(w1[6143], 64);
  EXPECT_EQ(layer.w13_scale.Rows(1, 1).as<float>()[1151], 1.0f);
  EXPECT_EQ(layer.w13_scale.Rows(1, 1).as<float>()[1150], 1.0f) << "a row of zeros";
  EXPECT_EQ(layer.w2_scale.Rows(1, 1).as<float>()[6143], 2.0f) << "of the full row";
  EXPECT_EQ(layer.w2.Rows(1, 1).as<int8_t>()[int64_t{6144} * 1152 - 1], -50);
}

// One tensor of more than 4 GiB: the stacked w1 and w3 of 20 experts.
TEST(SparseModel, RowsBeyond4GiBOfOneTensorAreFound) {
  TempFolder folder;
  const ModelConfig config = WriteConfig(folder.path(), SmallerM1(1, 20));
  const auto needed =
      NeededTensors(config, [](std::string_view name) { return name.find("mlp.") != name.npos; });
  std::vector<Entry> entries;
  for (const NeededTensor& tensor : needed) entries.push_back(EntryOf(tensor));
  const fs::path path = folder.path() / "model.safetensors";
  if (!WriteHole(path, entries)) GTEST_SKIP() << "SKIPPED: no files of 12 GB with holes";

  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file) << file.error().message();
  const StoredTensor& stacked = *file->Find("model.layers.0.mlp.experts.gate_up_proj");
  EXPECT_GT(stacked.bytes, 4 * kGiB);
  // The last row of the last expert's w3 is rank 63's.
  Plant(path, stacked.data_begin + stacked.bytes - 8, Bf16Bytes({5, 6, 7, 8}));
  const auto weights = LoadWeights(folder.path(), config, {.rank = 63, .ranks = 64});
  ASSERT_TRUE(weights) << weights.error().message();
  const TensorView& w13 = weights->layers[0].w13;
  const uint16_t* end = w13.as<uint16_t>() + w13.elements();
  EXPECT_EQ(Bf16ToFloat(end[-5]), 0);
  EXPECT_EQ(Bf16ToFloat(end[-4]), 5);
  EXPECT_EQ(Bf16ToFloat(end[-1]), 8);
}

}  // namespace
}  // namespace levin
