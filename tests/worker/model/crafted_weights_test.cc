// Checkpoints made to show a fault that random weights hide.
#include <gtest/gtest.h>

#include <bit>
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
