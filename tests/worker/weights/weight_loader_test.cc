// What is loaded is what the files hold, whatever the spelling and the number of ranks.
#include "worker/weights/weight_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>

#include "tests/worker/weights/model_folder.h"
#include "worker/tensor/bf16.h"
#include "worker/weights/needed_tensors.h"
#include "worker/weights/quantize.h"

namespace levin {
namespace {

using testing::GoldenModel;
using testing::RawTensor;

ModelConfig ConfigOf(const std::filesystem::path& dir) {
  Result<ModelConfig> config = LoadModelConfig(dir);
  EXPECT_TRUE(config) << config.error().message();
  return *config;
}

ModelWeights Load(const std::filesystem::path& dir, int rank, int ranks, bool int8 = false) {
  Result<ModelWeights> weights = LoadWeights(
      dir, ConfigOf(dir), {.rank = rank, .ranks = ranks, .quantize_experts_int8 = int8});
  EXPECT_TRUE(weights) << dir << " rank " << rank << "/" << ranks << ": "
                       << weights.error().message();
  return weights ? *std::move(weights) : ModelWeights{};
}

std::vector<ModelWeights> LoadAll(const std::filesystem::path& dir, int ranks, bool int8) {
  std::vector<ModelWeights> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(Load(dir, rank, ranks, int8));
  return all;
}

std::string Bytes(const TensorView& view) {
  return std::string(reinterpret_cast<const char*>(view.data), static_cast<size_t>(view.bytes()));
}

// The bytes that a stored norm or gate becomes.
std::string Widened(const RawTensor& tensor) {
  if (tensor.dtype == "F32") return tensor.bytes;
  std::string wide;
  for (size_t i = 0; i < tensor.bytes.size(); i += 2) {
    uint16_t bits;
    std::memcpy(&bits, tensor.bytes.data() + i, 2);
    const float value = Bf16ToFloat(bits);
    wide.append(reinterpret_cast<const char*>(&value), 4);
  }
  return wide;
}

class OneRank : public ::testing::TestWithParam<const char*> {};

TEST_P(OneRank, HoldsEveryTensorOfTheFilesUnchanged) {
  const std::filesystem::path dir = GoldenModel(GetParam());
  const ModelConfig config = ConfigOf(dir);
  const ModelWeights weights = Load(dir, 0, 1);
  std::map<std::string, RawTensor> stored;
  for (RawTensor& tensor : testing::AllTensors(dir)) stored[tensor.name] = std::move(tensor);

  EXPECT_EQ(Bytes(weights.embedding), stored.at("model.embed_tokens.weight").bytes);
  EXPECT_EQ(Bytes(weights.head), stored.at("lm_head.weight").bytes);
  EXPECT_EQ(Bytes(weights.final_norm), Widened(stored.at("model.norm.weight")));
  ASSERT_EQ(weights.layers.size(), static_cast<size_t>(config.layers));
  for (int l = 0; l < config.layers; ++l) {
    const LayerWeights& layer = weights.layers[static_cast<size_t>(l)];
    const std::string base = "model.layers." + std::to_string(l) + ".";
    const auto raw = [&](const char* name) { return stored.at(base + name).bytes; };
    EXPECT_EQ(Bytes(layer.input_norm), Widened(stored.at(base + "input_layernorm.weight")));
    EXPECT_EQ(Bytes(layer.post_attention_norm),
              Widened(stored.at(base + "post_attention_layernorm.weight")));
    EXPECT_EQ(Bytes(layer.gate), Widened(stored.at(base + "block_sparse_moe.gate.weight")));
    if (config.layer_kinds[static_cast<size_t>(l)] == LayerKind::kLightning) {
      EXPECT_EQ(Bytes(layer.qkv), raw("self_attn.qkv_proj.weight"));
      EXPECT_EQ(Bytes(layer.output_gate), raw("self_attn.output_gate.weight"));
      EXPECT_EQ(Bytes(layer.out), raw("self_attn.out_proj.weight"));
      EXPECT_EQ(Bytes(layer.lightning_norm), Widened(stored.at(base + "self_attn.norm.weight")));
      EXPECT_FALSE(layer.q || layer.k || layer.v || layer.o);
    } else {
      EXPECT_EQ(Bytes(layer.q), raw("self_attn.q_proj.weight"));
      EXPECT_EQ(Bytes(layer.k), raw("self_attn.k_proj.weight"));
      EXPECT_EQ(Bytes(layer.v), raw("self_attn.v_proj.weight"));
      EXPECT_EQ(Bytes(layer.o), raw("self_attn.o_proj.weight"));
      EXPECT_FALSE(layer.qkv || layer.output_gate || layer.out || layer.lightning_norm);
    }
    std::string w13, w2, w13_scale, w2_scale;
    for (int e = 0; e < config.experts; ++e) {
      const std::string expert = base + "block_sparse_moe.experts." + std::to_string(e) + ".";
      const auto part = [&](const char* name) {
        const auto found = stored.find(expert + name);
        return found == stored.end() ? std::string() : found->second.bytes;
      };
      w13 += part("w1.weight") + part("w3.weight");
      w2 += part("w2.weight");
      w13_scale += part("w1.weight_scale") + part("w3.weight_scale");
      w2_scale += part("w2.weight_scale");
    }
    EXPECT_EQ(Bytes(layer.w13), w13);
    EXPECT_EQ(Bytes(layer.w2), w2);
    EXPECT_EQ(Bytes(layer.w13_scale), w13_scale);
    EXPECT_EQ(Bytes(layer.w2_scale), w2_scale);
  }
}
INSTANTIATE_TEST_SUITE_P(Golden, OneRank,
                         ::testing::Values("tiny", "odd-heads", "deep", "tiny-native",
                                           "tiny-int8"));

// How the parts of the ranks make the whole again.
std::string Stacked(const std::vector<ModelWeights>& all,
                    const std::function<TensorView(const ModelWeights&)>& get) {
  std::string bytes;
  for (const ModelWeights& weights : all) bytes += Bytes(get(weights));
  return bytes;
}

// [.., rows, columns]: each row is the parts of all ranks side by side.
std::string SideBySide(const std::vector<ModelWeights>& all,
                       const std::function<TensorView(const ModelWeights&)>& get) {
  const TensorView first = get(all[0]);
  const int64_t columns = first.shape[first.shape.rank() - 1];
  const int64_t row_bytes = columns * ByteSize(first.dtype);
  std::string bytes;
  for (int64_t row = 0; row < first.elements() / columns; ++row) {
    for (const ModelWeights& weights : all) {
      bytes += Bytes(get(weights))
                   .substr(static_cast<size_t>(row * row_bytes), static_cast<size_t>(row_bytes));
    }
  }
  return bytes;
}

// [E, 2I, ...]: per expert the w1 parts of all ranks, then their w3 parts.
std::string Halves(const std::vector<ModelWeights>& all,
                   const std::function<TensorView(const ModelWeights&)>& get) {
  const TensorView first = get(all[0]);
  const size_t half = static_cast<size_t>(first.bytes() / first.shape[0] / 2);
  std::string bytes;
  for (size_t part = 0; part < static_cast<size_t>(first.shape[0]) * 2; ++part) {
    for (const ModelWeights& weights : all) bytes += Bytes(get(weights)).substr(part * half, half);
  }
  return bytes;
}

struct Split {
  const char* model;
  int ranks;
};
void PrintTo(const Split& split, std::ostream* out) { *out << split.model << " / " << split.ranks; }

class ManyRanks : public ::testing::TestWithParam<std::tuple<Split, bool>> {};

TEST_P(ManyRanks, HoldPartsThatMakeTheWhole) {
  const auto [split, int8] = GetParam();
  const std::filesystem::path dir = GoldenModel(split.model);
  const ModelConfig config = ConfigOf(dir);
  const ModelWeights whole = Load(dir, 0, 1, int8);
  const std::vector<ModelWeights> all = LoadAll(dir, split.ranks, int8);

  const auto of = [](TensorView ModelWeights::*member) {
    return [member](const ModelWeights& w) { return w.*member; };
  };
  EXPECT_EQ(Stacked(all, of(&ModelWeights::embedding)), Bytes(whole.embedding));
  EXPECT_EQ(Stacked(all, of(&ModelWeights::head)), Bytes(whole.head));
  for (size_t l = 0; l < whole.layers.size(); ++l) {
    const LayerWeights& layer = whole.layers[l];
    const auto in = [l](TensorView LayerWeights::*member) {
      return [l, member](const ModelWeights& w) { return w.layers[l].*member; };
    };
    for (auto rows : {&LayerWeights::qkv, &LayerWeights::output_gate, &LayerWeights::lightning_norm,
                      &LayerWeights::q}) {
      EXPECT_EQ(Stacked(all, in(rows)), Bytes(layer.*rows));
    }
    for (auto columns : {&LayerWeights::out, &LayerWeights::o, &LayerWeights::w2}) {
      if (!(layer.*columns)) continue;
      EXPECT_EQ(SideBySide(all, in(columns)), Bytes(layer.*columns));
    }
    EXPECT_EQ(Halves(all, in(&LayerWeights::w13)), Bytes(layer.w13));
    if (layer.w13_scale) {
      EXPECT_EQ(Halves(all, in(&LayerWeights::w13_scale)), Bytes(layer.w13_scale));
    }
    for (int rank = 0; rank < split.ranks; ++rank) {
      const LayerWeights& own = all[static_cast<size_t>(rank)].layers[l];
      for (auto same : {&LayerWeights::input_norm, &LayerWeights::post_attention_norm,
                        &LayerWeights::gate, &LayerWeights::w2_scale}) {
        EXPECT_EQ(Bytes(own.*same), Bytes(layer.*same));
      }
      if (!layer.k) continue;
      const int64_t first = int64_t{FirstKvHead(config, rank, split.ranks)} * config.head_dim;
      const int64_t count = int64_t{LocalKvHeads(config, split.ranks)} * config.head_dim;
      EXPECT_EQ(Bytes(own.k), Bytes(layer.k.Rows(first, count)));
      EXPECT_EQ(Bytes(own.v), Bytes(layer.v.Rows(first, count)));
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Golden, ManyRanks,
    ::testing::Combine(::testing::Values(Split{"tiny", 2}, Split{"tiny", 4}, Split{"tiny", 8},
                                         Split{"odd-heads", 2}, Split{"odd-heads", 4},
                                         Split{"deep", 2}, Split{"deep", 4}, Split{"deep", 8},
                                         Split{"tiny-native", 2}, Split{"tiny-native", 8},
                                         Split{"tiny-native-stacked", 2},
                                         Split{"tiny-native-stacked", 4},
                                         Split{"tiny-native-stacked", 8}, Split{"tiny-int8", 2},
                                         Split{"tiny-int8", 4}, Split{"tiny-int8", 8}),
                       ::testing::Bool()));

// A04
TEST(LoadWeights, TheSameNetworkHasTheSameDigestUnderEverySpelling) {
  for (int ranks : {1, 2, 4}) {
    for (int rank : {0, ranks - 1}) {
      const uint64_t digest = Load(GoldenModel("tiny"), rank, ranks).digest;
      EXPECT_EQ(Load(GoldenModel("tiny-native"), rank, ranks).digest, digest);
      EXPECT_EQ(Load(GoldenModel("tiny-native-stacked"), rank, ranks).digest, digest);
      const uint64_t int8 = Load(GoldenModel("tiny"), rank, ranks, true).digest;
      EXPECT_NE(int8, digest);
      EXPECT_EQ(Load(GoldenModel("tiny-int8"), rank, ranks).digest, int8);
      EXPECT_EQ(Load(GoldenModel("tiny-native-stacked"), rank, ranks, true).digest, int8);
    }
  }
}

TEST(LoadWeights, EachArchitectureNameLoadsTheSameWeights) {
  const uint64_t digest = Load(GoldenModel("tiny"), 0, 1).digest;
  for (const char* name :
       {"MiniMaxText01ForCausalLM", "MiniMaxM1ForCausalLM", "MiniMaxForCausalLM"}) {
    testing::ModelFolder folder("tiny");
    folder.SetConfig("architectures", {name});
    EXPECT_EQ(Load(folder.path(), 0, 1).digest, digest);
  }
}

TEST(LoadWeights, TheDigestSeesOneBitOfOneWeight) {
  const uint64_t digest = Load(GoldenModel("tiny"), 1, 2).digest;
  testing::ModelFolder folder("tiny");
  folder.Rewrite([](std::vector<RawTensor>&) {});
  EXPECT_EQ(Load(folder.path(), 1, 2).digest, digest) << "one file instead of shards";
  testing::ModelFolder changed("tiny");
  changed.Rewrite([](std::vector<RawTensor>& tensors) {
    testing::Named(tensors, "model.layers.6.block_sparse_moe.experts.3.w2.weight").bytes.back() ^=
        1;
  });
  EXPECT_NE(Load(changed.path(), 1, 2).digest, digest);
  EXPECT_EQ(Load(changed.path(), 0, 2).digest, Load(GoldenModel("tiny"), 0, 2).digest)
      << "the changed column belongs to the other rank";
}

TEST(LoadWeights, ProgressEndsAtTheTotalAndBytesAreTheBuffers) {
  const std::filesystem::path dir = GoldenModel("deep");
  int64_t last = 0;
  int64_t total = 0;
  const auto weights = LoadWeights(
      dir, ConfigOf(dir), {.rank = 0, .ranks = 1, .progress = [&](int64_t done, int64_t all) {
                             EXPECT_GT(done, last);
                             last = done;
                             total = all;
                           }});
  ASSERT_TRUE(weights);
  EXPECT_EQ(last, total);
  EXPECT_EQ(total, 9389248) << "total_size of the index";
  int64_t bytes = 0;
  for (const Buffer& buffer : weights->buffers) bytes += buffer.bytes();
  EXPECT_EQ(weights->bytes, bytes);
}

TEST(LoadWeights, TheDemoModelLoadsAtEveryLegalSplit) {
  const std::filesystem::path demo = std::filesystem::path(LEVIN_SOURCE_DIR) / "models/levin-demo";
  const std::string head = Bytes(Load(demo, 0, 1).head);
  for (int ranks : {2, 4, 8}) {
    EXPECT_EQ(Stacked(LoadAll(demo, ranks, true), [](const ModelWeights& w) { return w.head; }),
              head);
  }
}

TEST(LoadWeights, ATiedHeadIsTheEmbedding) {
  for (bool with_head : {false, true}) {
    testing::ModelFolder folder("tiny");
    folder.SetConfig("tie_word_embeddings", true);
    folder.Rewrite([&](std::vector<RawTensor>& tensors) {
      if (!with_head)
        std::erase_if(tensors, [](const auto& t) { return t.name == "lm_head.weight"; });
    });
    const ModelWeights weights = Load(folder.path(), 1, 2);
    EXPECT_EQ(weights.head.data, weights.embedding.data);
    EXPECT_EQ(weights.vocab_first, 160);
  }
}

TEST(LoadWeights, AVocabularyThatDoesNotDivideLeavesTheLastRankFewerRows) {
  testing::ModelFolder folder("tiny");
  folder.SetConfig("vocab_size", 318);
  folder.Rewrite([](std::vector<RawTensor>& tensors) {
    for (const char* name : {"model.embed_tokens.weight", "lm_head.weight"}) {
      RawTensor& tensor = testing::Named(tensors, name);
      tensor.shape[0] = 318;
      tensor.bytes.resize(318 * 64 * 2);
    }
  });
  const std::vector<ModelWeights> all = LoadAll(folder.path(), 4, false);
  EXPECT_EQ(all[0].head.shape[0], 80);
  EXPECT_EQ(all[3].head.shape[0], 78);
  EXPECT_EQ(all[3].vocab_first, 240);
  EXPECT_EQ(Stacked(all, [](const ModelWeights& w) { return w.head; }),
            Bytes(Load(folder.path(), 0, 1).head));
}

// F11: half-precision norms beside bf16 weights; gates as native checkpoints hold them.
TEST(LoadWeights, NormsAndGatesOfEveryFloatTypeAreWidened) {
  testing::ModelFolder folder("tiny");
  folder.Rewrite([](std::vector<RawTensor>& tensors) {
    RawTensor& half = testing::Named(tensors, "model.norm.weight");
    half.dtype = "F16";
    half.bytes.clear();
    for (int i = 0; i < 64; ++i) {
      const uint16_t bits[] = {0x3c00, 0xc000, 0x0001, 0x7bff};  // 1, -2, 2^-24, 65504
      half.bytes.append(reinterpret_cast<const char*>(&bits[i % 4]), 2);
    }
    RawTensor& norm = testing::Named(tensors, "model.layers.0.input_layernorm.weight");
    norm.bytes = Widened(norm);
    norm.dtype = "F32";
    RawTensor& gate = testing::Named(tensors, "model.layers.0.block_sparse_moe.gate.weight");
    gate.dtype = "BF16";
    gate.bytes.clear();
    for (int i = 0; i < 4 * 64; ++i) gate.bytes += std::string("\x80\x3f", 2);
  });
  const ModelWeights weights = Load(folder.path(), 0, 1);
  const float* norm = weights.final_norm.as<float>();
  EXPECT_EQ(norm[0], 1.0f);
  EXPECT_EQ(norm[1], -2.0f);
  EXPECT_EQ(norm[2], 5.9604645e-8f);
  EXPECT_EQ(norm[3], 65504.0f);
  EXPECT_EQ(Bytes(weights.layers[0].input_norm),
            Bytes(Load(GoldenModel("tiny"), 0, 1).layers[0].input_norm));
  EXPECT_EQ(weights.layers[0].gate.as<float>()[255], 1.0f);
}

TEST(LoadWeights, ScalesMayBeColumns) {
  testing::ModelFolder folder("tiny-int8");
  folder.Rewrite([](std::vector<RawTensor>& tensors) {
    for (RawTensor& tensor : tensors) {
      if (tensor.name.ends_with("weight_scale")) tensor.shape.push_back(1);
    }
  });
  EXPECT_EQ(Load(folder.path(), 1, 2).digest, Load(GoldenModel("tiny-int8"), 1, 2).digest);
}

TEST(LoadWeights, RotaryTablesInTheFileAreIgnored) {
  testing::ModelFolder folder("tiny");
  folder.Rewrite([](std::vector<RawTensor>& tensors) {
    tensors.push_back(
        {"model.layers.3.self_attn.rotary_emb.inv_freq", "F32", {4}, std::string(16, 0)});
  });
  EXPECT_EQ(Load(folder.path(), 0, 1).digest, Load(GoldenModel("tiny"), 0, 1).digest);
}

// Numbers of model.md 6: what the released files hold.
TEST(NeededTensors, OfTheReleasedModelHaveThePublishedCountAndSize) {
  ModelConfig config;
  config.layers = 80;
  for (int l = 0; l < 80; ++l) {
    config.layer_kinds.push_back(l % 8 == 7 ? LayerKind::kSoftmax : LayerKind::kLightning);
  }
  config.hidden = 6144;
  config.heads = 64;
  config.kv_heads = 8;
  config.head_dim = 128;
  config.experts = 32;
  config.expert_width = 9216;
  config.vocab = 200064;
  const auto needed = NeededTensors(config, [](std::string_view) { return false; });
  EXPECT_EQ(needed.size(), 8243u);
  int64_t bytes = 0;
  for (const NeededTensor& tensor : needed) {
    int64_t elements = 1;
    for (int64_t dim : tensor.shape) elements *= dim;
    bytes += elements * (tensor.piece == WeightPiece::kGate ? 4 : 2);
  }
  EXPECT_EQ(bytes, 912'210'767'872);
}

}  // namespace
}  // namespace levin
