// Model folders that must not load, and what the message says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/weights/model_folder.h"
#include "worker/weights/weight_loader.h"

namespace levin {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::GoldenModel;
using ::testing::HasSubstr;
using testing::ModelFolder;
using testing::Named;
using testing::RawTensor;

Result<ModelWeights> TryLoad(const fs::path& dir, LoadOptions options = {}) {
  const Result<ModelConfig> config = LoadModelConfig(dir);
  if (!config) return Error(config.error());
  return LoadWeights(dir, *config, options);
}

// "" when it loads.
std::string ErrorOf(const fs::path& dir, LoadOptions options = {}) {
  const Result<ModelWeights> weights = TryLoad(dir, std::move(options));
  return weights ? "" : weights.error().message();
}

template <typename Change>
std::string ErrorAfter(std::string_view model, Change change) {
  ModelFolder folder(model);
  folder.Rewrite(change);
  return ErrorOf(folder.path());
}

constexpr char kShard0[] = "model-00000-of-00002.safetensors";
constexpr char kShard1[] = "model-00001-of-00002.safetensors";
constexpr char kExpert[] = "model.layers.5.block_sparse_moe.experts.2.w3.weight";

// A08, F12
TEST(WeightErrors, AnIllegalNumberOfRanksIsRefusedBeforeAnyFileIsOpened) {
  const ModelConfig config = *LoadModelConfig(GoldenModel("odd-heads"));
  const auto weights = LoadWeights("/nowhere", config, {.rank = 0, .ranks = 8});
  EXPECT_THAT(weights.error().message(),
              AllOf(HasSubstr("8"), HasSubstr("12"), HasSubstr("1, 2, 4")));
}

// F07
TEST(WeightErrors, MissingFilesAreListed) {
  ModelFolder folder("tiny");
  fs::remove(folder.path() / kShard1);
  EXPECT_THAT(ErrorOf(folder.path()),
              AllOf(HasSubstr(kShard1), ::testing::Not(HasSubstr(kShard0))));
  fs::remove(folder.path() / kShard0);
  EXPECT_THAT(ErrorOf(folder.path()), AllOf(HasSubstr(kShard1), HasSubstr(kShard0)));
  fs::remove(folder.path() / "model.safetensors.index.json");
  EXPECT_THAT(ErrorOf(folder.path()), HasSubstr("neither"));
}

TEST(WeightErrors, MissingAndUnknownTensorsAreListed) {
  EXPECT_THAT(ErrorAfter("tiny",
                         [](auto& all) {
                           std::erase_if(all, [](const RawTensor& t) { return t.name == kExpert; });
                         }),
              AllOf(HasSubstr("missing, 1 of them"), HasSubstr(kExpert)));
  EXPECT_THAT(
      ErrorAfter("tiny", [](auto& all) { Named(all, kExpert).name = "renamed"; }),
      AllOf(HasSubstr("missing"), HasSubstr(kExpert), HasSubstr("unknown, 1 of them: renamed")));
  EXPECT_THAT(ErrorAfter("tiny",
                         [](auto& all) {
                           all.push_back({"model.layers.8.input_layernorm.weight",
                                          "BF16",
                                          {64},
                                          std::string(128, 0)});
                         }),
              HasSubstr("unknown, 1 of them: model.layers.8.input_layernorm.weight"));
  EXPECT_THAT(ErrorAfter("tiny",
                         [](auto& all) {
                           std::erase_if(
                               all, [](const RawTensor& t) { return t.name == "lm_head.weight"; });
                         }),
              HasSubstr("lm_head.weight"));
  // Decay buffers belong to lightning layers; layer 3 is none.
  EXPECT_THAT(ErrorAfter("tiny",
                         [](auto& all) {
                           all.push_back({"model.layers.3.self_attn.slope_rate",
                                          "BF16",
                                          {8, 1, 1},
                                          std::string(16, 0)});
                         }),
              HasSubstr("unknown"));
}

TEST(WeightErrors, TheSameExpertsUnderTwoNamesAreTooMany) {
  EXPECT_THAT(ErrorAfter("tiny-native-stacked",
                         [](auto& all) {
                           RawTensor gate = Named(all, "model.layers.0.mlp.gate.weight");
                           gate.name = "model.layers.0.block_sparse_moe.gate.weight";
                           all.push_back(gate);
                         }),
              HasSubstr("unknown, 1 of them: model.layers.0.mlp.gate.weight"));
  EXPECT_THAT(ErrorAfter("tiny-native-stacked",
                         [](auto& all) {
                           all.push_back({"model.layers.0.block_sparse_moe.experts.0.w1.weight",
                                          "BF16",
                                          {96, 64},
                                          std::string(96 * 64 * 2, 0)});
                         }),
              HasSubstr("unknown, 1 of them: model.layers.0.block_sparse_moe.experts.0.w1.weight"));
  EXPECT_THAT(ErrorAfter("tiny-native-stacked",
                         [](auto& all) {
                           std::erase_if(all, [](const RawTensor& t) {
                             return t.name == "model.layers.0.mlp.experts.down_proj";
                           });
                         }),
              HasSubstr("missing, 1 of them: model.layers.0.mlp.experts.down_proj"));
}

TEST(WeightErrors, ShapesAreToldBothWays) {
  const auto reshape = [](const char* name, std::vector<int64_t> shape) {
    return [=](auto& all) { Named(all, name).shape = shape; };
  };
  EXPECT_THAT(ErrorAfter("tiny", reshape("model.layers.0.self_attn.qkv_proj.weight", {64, 384})),
              AllOf(HasSubstr("model.layers.0.self_attn.qkv_proj.weight"),
                    HasSubstr("has shape [64, 384], expected [384, 64]")));
  EXPECT_THAT(ErrorAfter("tiny", reshape("model.norm.weight", {64, 1})),
              HasSubstr("has shape [64, 1], expected [64]"));
  EXPECT_THAT(ErrorAfter("tiny-native-stacked",
                         reshape("model.layers.0.mlp.experts.gate_up_proj", {8, 96, 64})),
              HasSubstr("has shape [8, 96, 64], expected [4, 192, 64]"));
  ModelFolder folder("tiny");
  folder.SetConfig("vocab_size", 321);
  EXPECT_THAT(ErrorOf(folder.path()), HasSubstr("has shape [320, 64], expected [321, 64]"));
  folder.SetConfig("vocab_size", 320);
  folder.SetConfig("hidden_size", 1 << 20);
  folder.SetConfig("intermediate_size", 1 << 22);
  EXPECT_THAT(ErrorOf(folder.path()), HasSubstr("expected [320, 1048576]"))
      << "refused before anything of that size is allocated";
}

// F11
TEST(WeightErrors, TypesThatCannotBeServedAreRefusedByName) {
  for (const char* dtype : {"F16", "I16", "U16"}) {
    EXPECT_THAT(
        ErrorAfter("tiny",
                   [&](auto& all) { Named(all, "model.embed_tokens.weight").dtype = dtype; }),
        HasSubstr("tensor 'model.embed_tokens.weight' in"));
    EXPECT_THAT(ErrorAfter("tiny", [&](auto& all) { Named(all, kExpert).dtype = dtype; }),
                AllOf(HasSubstr(kExpert),
                      HasSubstr("has dtype " + std::string(dtype) + ", expected BF16")));
  }
  for (const char* dtype : {"F8_E4M3", "F8_E5M2", "BOOL", "U8", "I8"}) {
    EXPECT_THAT(ErrorAfter("tiny",
                           [&](auto& all) {
                             Named(all, kExpert).dtype = dtype;
                             Named(all, kExpert).bytes.resize(96 * 64);
                           }),
                HasSubstr("has dtype " + std::string(dtype) + ", expected BF16"));
  }
  EXPECT_THAT(ErrorAfter("tiny",
                         [](auto& all) {
                           Named(all, "model.layers.0.block_sparse_moe.gate.weight").dtype = "I32";
                         }),
              HasSubstr("expected BF16, F16 or F32"));
}

TEST(WeightErrors, AConfigThatContradictsTheTensorsIsRefused) {
  ModelFolder folder("tiny");
  folder.SetConfig("quantization_config", {{"quant_method", "experts_int8"}});
  EXPECT_THAT(ErrorOf(folder.path()),
              AllOf(HasSubstr("has dtype BF16, expected I8"), HasSubstr("config.json says")));
  ModelFolder reverse("tiny-int8");
  reverse.SetConfig("quantization_config", nullptr);
  EXPECT_THAT(ErrorOf(reverse.path()),
              AllOf(HasSubstr("has dtype I8, expected BF16"), HasSubstr("does not say")));
  EXPECT_THAT(
      ErrorAfter("tiny-int8",
                 [](auto& all) {
                   std::erase_if(all, [](const RawTensor& t) {
                     return t.name == "model.layers.5.block_sparse_moe.experts.2.w3.weight_scale";
                   });
                 }),
      HasSubstr("missing, 1 of them: model.layers.5.block_sparse_moe.experts.2.w3.weight_scale"));
}

TEST(WeightErrors, NumbersThatAreNoneAreRefusedWithTheirRow) {
  EXPECT_THAT(ErrorAfter("tiny-int8",
                         [](auto& all) {
                           const uint32_t nan = 0x7fc00000;
                           Named(all, "model.layers.0.block_sparse_moe.experts.0.w2.weight_scale")
                               .bytes.replace(4 * 9, 4, reinterpret_cast<const char*>(&nan), 4);
                         }),
              AllOf(HasSubstr("experts.0.w2.weight_scale"), HasSubstr("row 9")));
  ModelFolder folder("tiny");
  folder.Rewrite([](auto& all) { Named(all, kExpert).bytes.replace(64 * 2 * 70, 2, "\x80\xff"); });
  EXPECT_THAT(ErrorOf(folder.path(), {.rank = 0, .ranks = 1, .quantize_experts_int8 = true}),
              AllOf(HasSubstr(kExpert), HasSubstr("row 70")));
}

TEST(WeightErrors, TheIndexAndTheFilesMustSayTheSame) {
  const auto with_index = [](auto change) {
    ModelFolder folder("tiny");
    const fs::path path = folder.path() / "model.safetensors.index.json";
    boost::json::value index = boost::json::parse(testing::ReadBytes(path));
    change(index.at("weight_map").as_object());
    testing::WriteBytes(path, boost::json::serialize(index));
    return ErrorOf(folder.path());
  };
  EXPECT_EQ(with_index([](auto&) {}), "");
  EXPECT_THAT(with_index([](auto& map) { map.erase(kExpert); }),
              AllOf(HasSubstr(kExpert), HasSubstr("does not name")));
  EXPECT_THAT(with_index([](auto& map) { map[kExpert] = kShard0; }),
              AllOf(HasSubstr(kExpert), HasSubstr(kShard0)));
  EXPECT_THAT(with_index([](auto& map) { map["ghost"] = kShard0; }), HasSubstr("ghost in "));
  EXPECT_THAT(with_index([](auto& map) { map[kExpert] = "../../etc/passwd"; }),
              HasSubstr("the name of a file in the same folder"));
}

// F09
TEST(WeightErrors, FilesThatTheIndexDoesNotNameAreNotRead) {
  ModelFolder folder("tiny");
  testing::WriteBytes(folder.path() / "model.safetensors", "not even a header");
  fs::copy_file(folder.path() / kShard1, folder.path() / "model-00009-of-00002.safetensors");
  EXPECT_EQ(ErrorOf(folder.path()), "");
  fs::remove(folder.path() / "model.safetensors.index.json");
  EXPECT_THAT(ErrorOf(folder.path()), HasSubstr("model.safetensors'"));
}

// F01, F14
TEST(WeightErrors, CutFilesAreRefusedByName) {
  ModelFolder folder("tiny");
  const uintmax_t size = fs::file_size(folder.path() / kShard1);
  for (uintmax_t left : {uintmax_t{0}, uintmax_t{4}, uintmax_t{8}, uintmax_t{1000}, size - 1}) {
    fs::resize_file(folder.path() / kShard1, left);
    EXPECT_THAT(ErrorOf(folder.path()), HasSubstr(kShard1)) << left;
  }
}

// The file that is being read, and one whose turn has not come yet.
TEST(WeightErrors, AFileCutWhileItIsLoadedIsAnErrorAndNoSignal) {
  for (const char* shard : {kShard0, kShard1}) {
    ModelFolder folder("tiny");
    bool cut = false;
    const auto weights =
        TryLoad(folder.path(), {.rank = 0,
                                .ranks = 1,
                                .progress =
                                    [&](int64_t, int64_t) {
                                      if (!cut) fs::resize_file(folder.path() / shard, 60000);
                                      cut = true;
                                    },
                                .threads = 1});
    ASSERT_FALSE(weights);
    EXPECT_EQ(weights.error().code(), Code::kDataLoss);
    EXPECT_THAT(weights.error().message(),
                AllOf(HasSubstr(shard),
                      HasSubstr(shard == kShard0 ? "at byte 60000" : "it has 60000 bytes")));
  }
}

}  // namespace
}  // namespace levin
