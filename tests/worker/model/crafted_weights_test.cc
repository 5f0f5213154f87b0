// Checkpoints made to show a fault that random weights hide.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "tests/worker/model/tiny_network.h"
#include "tests/worker/weights/model_folder.h"

namespace levin::testing {
namespace {

// Rows of a bf16 matrix times a power of two, which is exact; 0 gives zeros.
void ScaleRows(RawTensor& tensor, int64_t first, int64_t count, float factor) {
  ASSERT_EQ("BF16", tensor.dtype);
  for (int64_t i = first * tensor.shape[1]; i < (first + count) * tensor.shape[1]; ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, tensor.bytes.data() + i * 2, 2);
    const float value = std::bit_cast<float>(uint32_t{bits} << 16) * factor;
    bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
    std::memcpy(tensor.bytes.data() + i * 2, &bits, 2);
  }
}

// Every KV head `copies` times, one behind the other.
void RepeatHeads(RawTensor& tensor, int64_t dim, int64_t copies) {
  const size_t head_bytes = static_cast<size_t>(dim * tensor.shape[1] * 2);
  std::string repeated;
  for (size_t at = 0; at < tensor.bytes.size(); at += head_bytes) {
    for (int64_t i = 0; i < copies; ++i) repeated += tensor.bytes.substr(at, head_bytes);
  }
  tensor.bytes = repeated;
  tensor.shape[0] *= copies;
}

// A norm over one rank's heads would divide zeros by nothing on one rank and take half of the width
// for the whole on the other.
TEST(CraftedWeightsTest, TheInnerNormSeesTheHeadsOfAllRanks) {
  ModelFolder folder("tiny");
  const ModelConfig config = *LoadModelConfig(folder.path());
  const int64_t d = config.head_dim;
  folder.Rewrite([&](std::vector<RawTensor>& tensors) {
    for (RawTensor& tensor : tensors) {
      if (!tensor.name.ends_with("self_attn.qkv_proj.weight")) continue;
      for (int64_t head = 0; head < config.heads; ++head) {
        const bool silent = head < config.heads / 2;
        ScaleRows(tensor, head * 3 * d + 2 * d, d, silent ? 0.0f : 256.0f);  // its values
      }
    }
  });
  const std::vector<TokenId> prompt = Prompt(6, 70);
  ModelGroup one(folder.path(), {});
  for (const int64_t chunk : {0, 1}) {
    const std::vector<float> expected = one.Prefill(prompt, chunk);
    for (const int ranks : {2, 4, 8}) {
      GroupOptions options;
      options.ranks = ranks;
      EXPECT_LE(Difference(expected, ModelGroup(folder.path(), options).Prefill(prompt, chunk)),
                1e-4f)
          << ranks << " ranks, chunk " << chunk;
    }
  }
  EXPECT_GT(Difference(one.Prefill(prompt, 0), ModelGroup(Tiny(), {}).Prefill(prompt, 0)), 0.1f)
      << "the crafted weights change nothing";
}

// What attention adds in the first layer, before roundings of bf16 flip routing decisions.
class FirstLayer final : public Probe {
 public:
  void OnTensor(std::string_view what, int layer, const TensorView& value,
                const StepBatch&) override {
    if (what != "after_attention" || layer != 0) return;
    values.insert(values.end(), value.as<float>(), value.as<float>() + value.elements());
  }
  bool wants_logits() const override { return false; }
  void OnLogits(const TensorView&, const StepBatch&) override {}

  std::vector<float> values;
};

TEST(CraftedWeightsTest, TheInnerNormSeesTheHeadsOfAllRanksInBfloat16) {
  ModelFolder folder("tiny");
  const ModelConfig config = *LoadModelConfig(folder.path());
  const int64_t d = config.head_dim;
  folder.Rewrite([&](std::vector<RawTensor>& tensors) {
    RawTensor& qkv = Named(tensors, "model.layers.0.self_attn.qkv_proj.weight");
    for (int64_t head = 0; head < config.heads; ++head) {
      const bool silent = head < config.heads / 2;
      ScaleRows(qkv, head * 3 * d + 2 * d, d, silent ? 0.0f : 256.0f);
    }
  });
  const std::vector<TokenId> prompt = Prompt(6, 70);
  for (const int64_t chunk : {0, 1}) {
    std::vector<float> expected;
    for (const int ranks : {1, 2, 4, 8}) {
      GroupOptions options;
      options.ranks = ranks;
      options.activations = DType::kBF16;
      ModelGroup group(folder.path(), options);
      FirstLayer probe;
      group.model(0).set_probe(&probe);
      group.Prefill(prompt, chunk);
      if (ranks == 1) expected = probe.values;
      float largest = 0;
      for (const float value : expected) largest = std::max(largest, std::abs(value));
      // One rounding of a normed value to bf16 is 2^-9 of it.
      EXPECT_LE(Difference(expected, probe.values), largest / 256)
          << ranks << " ranks, chunk " << chunk;
    }
  }
}

// Rows (or columns) of heads in another order, in every matrix that knows them.
void PermuteHeads(RawTensor& tensor, int64_t heads, int64_t width, bool columns,
                  const std::vector<int64_t>& order) {
  const std::string before = tensor.bytes;
  const int64_t rows = columns ? tensor.shape[0] : 1;
  const int64_t row_bytes = static_cast<int64_t>(before.size()) / rows;
  const int64_t bytes = columns ? width * 2 : width * tensor.shape[1] * 2;
  ASSERT_EQ(row_bytes, heads * bytes) << tensor.name;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t h = 0; h < heads; ++h) {
      std::memcpy(tensor.bytes.data() + row * row_bytes + h * bytes,
                  before.data() + row * row_bytes + order[h] * bytes, bytes);
    }
  }
}

TEST(CraftedWeightsTest, TheOrderOfSoftmaxHeadsDoesNotMatterWhenKvHeadsFollow) {
  ModelFolder folder("tiny");
  const ModelConfig config = *LoadModelConfig(folder.path());
  ASSERT_EQ(8, config.heads);
  ASSERT_EQ(2, config.kv_heads);
  const std::vector<int64_t> kv = {1, 0};
  const std::vector<int64_t> query = {6, 4, 7, 5, 1, 3, 0, 2};  // each with its KV head
  folder.Rewrite([&](std::vector<RawTensor>& tensors) {
    for (RawTensor& tensor : tensors) {
      const int64_t d = config.head_dim;
      if (tensor.name.ends_with(".q_proj.weight")) PermuteHeads(tensor, 8, d, false, query);
      if (tensor.name.ends_with(".k_proj.weight")) PermuteHeads(tensor, 2, d, false, kv);
      if (tensor.name.ends_with(".v_proj.weight")) PermuteHeads(tensor, 2, d, false, kv);
      if (tensor.name.ends_with(".o_proj.weight")) PermuteHeads(tensor, 8, d, true, query);
    }
  });
  const std::vector<TokenId> prompt = Prompt(8, 90);
  EXPECT_LE(Difference(ModelGroup(Tiny(), {}).Prefill(prompt, 0),
                       ModelGroup(folder.path(), {}).Prefill(prompt, 0)),
            5e-5f);
}

TEST(CraftedWeightsTest, SharedKvHeadsAreOneHeadEachRepeated) {
  ModelFolder folder("tiny");
  const ModelConfig config = *LoadModelConfig(folder.path());
  const int64_t copies = config.heads / config.kv_heads;
  ASSERT_GT(copies, 1);
  folder.SetConfig("num_key_value_heads", config.heads);
  folder.Rewrite([&](std::vector<RawTensor>& tensors) {
    for (RawTensor& tensor : tensors) {
      for (const char* name : {"self_attn.k_proj.weight", "self_attn.v_proj.weight"}) {
        if (tensor.name.ends_with(name)) RepeatHeads(tensor, config.head_dim, copies);
      }
    }
  });
  const std::vector<TokenId> prompt = Prompt(7, 130);
  ModelGroup repeated(folder.path(), {});
  ModelGroup shared(Tiny(), {});
  EXPECT_EQ(config.heads, repeated.config().kv_heads);
  for (const int64_t chunk : {0, 1, 64}) {
    EXPECT_LE(Difference(shared.Prefill(prompt, chunk), repeated.Prefill(prompt, chunk)), 1e-6f)
        << "chunk " << chunk;
  }
}

}  // namespace
}  // namespace levin::testing
