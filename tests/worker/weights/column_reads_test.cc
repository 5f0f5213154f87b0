// Who reads which bytes of the files: a group reads a split tensor once, each rank its own part.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/worker/weights/model_folder.h"
#include "worker/weights/checkpoint.h"
#include "worker/weights/read_plan.h"
#include "worker/weights/weight_layout.h"
#include "worker/weights/weight_loader.h"

namespace levin {
namespace {

using testing::RawTensor;
using testing::TempFolder;

// One layer of each kind, with rows long enough that columns are worth a call. Experts as bf16, or
// stored as int8 with their scales.
class WideModel final : public TempFolder {
 public:
  explicit WideModel(bool int8) {
    boost::json::object json =
        boost::json::parse(testing::ReadBytes(testing::GoldenModel("tiny") / "config.json"))
            .as_object();
    json["num_hidden_layers"] = 2;
    json["attn_type_list"] = {0, 1};
    json["hidden_size"] = 64;
    json["head_dim"] = 64;
    json["intermediate_size"] = 2048;
    json["num_local_experts"] = 2;
    if (int8) json["quantization_config"] = {{"quant_method", "experts_int8"}};
    testing::WriteBytes(path() / "config.json", boost::json::serialize(json));
    config = *LoadModelConfig(path());
    std::mt19937 random(1);
    for (const NeededTensor& need : NeededTensors(config, [](std::string_view) { return false; })) {
      RawTensor tensor{need.name, "BF16", need.shape, ""};
      size_t elements = 1;
      for (int64_t dim : need.shape) elements *= static_cast<size_t>(dim);
      if (need.type == StoredAs::kI8) tensor.dtype = "I8";
      if (need.type == StoredAs::kF32) tensor.dtype = "F32";
      const size_t width = tensor.dtype == "I8" ? 1 : tensor.dtype == "F32" ? 4 : 2;
      for (size_t i = 0; i < elements; ++i) {
        // Finite in every type: no exponent of all ones.
        for (size_t b = 0; b < width; ++b) {
          tensor.bytes += static_cast<char>(b + 1 == width ? 0x3c : random() & 0x7f);
        }
        if (width == 1) tensor.bytes.back() = static_cast<char>(random() % 255 - 127);
      }
      tensors.push_back(std::move(tensor));
    }
    testing::WriteBytes(path() / "model.safetensors", testing::RawFile(tensors));
  }

  const RawTensor& Named(const std::string& name) const {
    for (const RawTensor& tensor : tensors) {
      if (tensor.name == name) return tensor;
    }
    ADD_FAILURE() << "no tensor " << name;
    return tensors.front();
  }

  ModelConfig config;
  std::vector<RawTensor> tensors;
};

std::string Columns(const RawTensor& tensor, int64_t rank, int64_t ranks) {
  const auto rows = static_cast<size_t>(tensor.shape[0]);
  const size_t row = tensor.bytes.size() / rows;
  const size_t own = row / static_cast<size_t>(ranks);
  std::string bytes;
  for (size_t r = 0; r < rows; ++r) {
    bytes += tensor.bytes.substr(r * row + static_cast<size_t>(rank) * own, own);
  }
  return bytes;
}

std::string Bytes(const TensorView& view) {
  return {reinterpret_cast<const char*>(view.data), static_cast<size_t>(view.bytes())};
}

TEST(ColumnReads, GiveEachRankItsColumnsAsTheyAreStored) {
  const std::string expert = "model.layers.0.block_sparse_moe.experts.1.w2.weight";
  for (bool int8 : {false, true}) {
    const WideModel model(int8);
    for (int ranks : {1, 2, 4, 8}) {
      if (!CheckTensorParallel(model.config, ranks).ok()) continue;
      for (int rank = 0; rank < ranks; ++rank) {
        SCOPED_TRACE(::testing::Message() << "int8 " << int8 << " rank " << rank << "/" << ranks);
        const auto weights =
            LoadWeights(model.path(), model.config, {.rank = rank, .ranks = ranks, .threads = 3});
        ASSERT_TRUE(weights) << weights.error().message();
        EXPECT_EQ(Bytes(weights->layers[0].out),
                  Columns(model.Named("model.layers.0.self_attn.out_proj.weight"), rank, ranks));
        EXPECT_EQ(Bytes(weights->layers[1].o),
                  Columns(model.Named("model.layers.1.self_attn.o_proj.weight"), rank, ranks));
        EXPECT_EQ(Bytes(weights->layers[0].w2.Rows(1, 1)),
                  Columns(model.Named(expert), rank, ranks));
      }
    }
  }
}

// How often a group reads each byte of the file.
std::vector<int> Reads(const WideModel& model, int ranks, bool quantize) {
  const auto checkpoint = Checkpoint::Open(model.path());
  EXPECT_TRUE(checkpoint) << checkpoint.error().message();
  const auto needed =
      NeededTensors(model.config, [&](std::string_view name) { return checkpoint->Has(name); });
  std::vector<int> reads(std::filesystem::file_size(model.path() / "model.safetensors"));
  for (int rank = 0; rank < ranks; ++rank) {
    const auto weights =
        AllocateWeights(model.config, {rank, ranks}, ExpertFormatFor(model.config, quantize));
    EXPECT_TRUE(weights);
    for (const ReadPiece& piece :
         PlanReads(*checkpoint, needed, model.config, {rank, ranks}, *weights)) {
      EXPECT_LE(piece.offset + piece.extent(), piece.tensor->bytes);
      for (int64_t at = 0; at < piece.bytes; ++at) {
        const int64_t in_tensor =
            piece.offset + at / piece.row_bytes * piece.row_stride + at % piece.row_bytes;
        ++reads[static_cast<size_t>(piece.tensor->data_begin + in_tensor)];
      }
    }
  }
  return reads;
}

// {fewest, most} reads of a tensor's bytes.
std::pair<int, int> Range(const std::vector<int>& reads, const StoredTensor& tensor) {
  const auto begin = reads.begin() + tensor.data_begin;
  const auto [least, most] = std::minmax_element(begin, begin + tensor.bytes);
  return {*least, *most};
}

TEST(ColumnReads, AGroupReadsASplitTensorOnceAndOnlyWhatIsNeededWholeMoreOften) {
  constexpr int kRanks = 2;
  for (bool int8 : {false, true}) {
    const WideModel model(int8);
    const auto file = SafetensorsFile::Open(model.path() / "model.safetensors");
    ASSERT_TRUE(file);
    for (bool quantize : {false, true}) {
      const std::vector<int> reads = Reads(model, kRanks, quantize);
      for (const StoredTensor& tensor : file->tensors()) {
        const std::string& name = tensor.name;
        const bool everywhere = name.ends_with("layernorm.weight") || name == "model.norm.weight" ||
                                name.ends_with("gate.weight") || name.ends_with("w2.weight_scale");
        // The scale that is made while loading is that of the whole row.
        const bool whole_rows = quantize && !int8 && name.ends_with("w2.weight");
        const int times =
            (everywhere && !name.ends_with("output_gate.weight")) || whole_rows ? kRanks : 1;
        EXPECT_EQ(Range(reads, tensor), std::pair(times, times))
            << name << " int8 " << int8 << " quantize " << quantize;
      }
    }
  }
}

TEST(ColumnReads, ShortColumnsAreCopiedOutOfWholeRows) {
  // out_proj has 512 columns of bf16: 8 ranks would read 128 bytes a row.
  const WideModel model(false);
  if (!CheckTensorParallel(model.config, 8).ok()) FAIL() << "8 ranks are legal for this model";
  const auto file = SafetensorsFile::Open(model.path() / "model.safetensors");
  const std::vector<int> reads = Reads(model, 8, false);
  EXPECT_EQ(Range(reads, *file->Find("model.layers.0.self_attn.out_proj.weight")), std::pair(8, 8));
  EXPECT_EQ(Range(reads, *file->Find("model.layers.0.block_sparse_moe.experts.0.w2.weight")),
            std::pair(1, 1))
      << "512 bytes a row";
}

TEST(ColumnReads, AFileCutInsideARanksColumnsIsAnErrorWithItsOffset) {
  const WideModel model(false);
  const std::filesystem::path path = model.path() / "model.safetensors";
  const auto file = SafetensorsFile::Open(path);
  // Rank 1 of 2 has bytes 2048 to 4095 of each row.
  const StoredTensor& w2 = *file->Find("model.layers.0.block_sparse_moe.experts.1.w2.weight");
  const int64_t cut = w2.data_begin + 40 * 4096 + 2048 + 100;
  LoadOptions options{.rank = 1, .ranks = 2, .threads = 1};
  options.progress = [&](int64_t, int64_t) {
    std::filesystem::resize_file(path, static_cast<uintmax_t>(cut));
  };
  const auto weights = LoadWeights(model.path(), model.config, options);
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().code(), Code::kDataLoss);
  EXPECT_NE(weights.error().message().find("at byte " + std::to_string(cut) + ": the file ends"),
            std::string::npos)
      << weights.error().message();
  EXPECT_NE(weights.error().message().find("experts.1.w2"), std::string::npos);
}

}  // namespace
}  // namespace levin
