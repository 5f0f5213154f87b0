// What config.json says about the network, every field checked and none assumed (model.md 1).
// Plain data after loading; any thread may read it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace levin {

enum class LayerKind : uint8_t { kLightning = 0, kSoftmax = 1 };

struct ModelConfig {
  enum class Family : uint8_t { kText01, kM1, kNative };

  // The residual factors of one sub-block: x = alpha * R(y, x) + beta * F(y) (model.md 2.1).
  struct Residual {
    double alpha = 1.0;
    double beta = 1.0;
    bool operator==(const Residual&) const = default;
  };

  Family family = Family::kText01;
  std::string architecture;  // as the file names it

  int32_t layers = 0;
  std::vector<LayerKind> layer_kinds;  // [layers]
  int32_t hidden = 0;
  int32_t heads = 0;     // query heads, and the heads of the lightning layers
  int32_t kv_heads = 0;  // of the softmax layers
  int32_t head_dim = 0;
  int32_t rotary_dim = 0;  // even, <= head_dim; softmax layers only
  double rope_theta = 0;
  int64_t max_positions = 0;  // the model's own limit; never the size of a table
  int32_t experts = 0;
  int32_t experts_per_token = 0;
  int32_t expert_width = 0;
  int32_t vocab = 0;  // rows of embedding and head; more than the tokenizer defines
  bool postnorm = true;
  bool tie_word_embeddings = false;  // the head is the embedding
  bool experts_stored_int8 = false;  // quantization_config says experts_int8
  float rms_norm_eps = 0;            // input, post-attention and final norm
  float lightning_norm_eps = 1e-6f;  // inner norm: a setting of ours, not in the file (4.6)
  Residual lightning, softmax, mlp;

  int32_t lightning_layers() const;
  int32_t softmax_layers() const;
  bool operator==(const ModelConfig&) const = default;
};

// Reads model_dir/config.json. Errors name the file, the key, its value and what was expected:
// kNotFound when there is no file, kInvalidArgument for everything that it says wrong.
Result<ModelConfig> LoadModelConfig(const std::filesystem::path& model_dir);

// The same from the file's text.
Result<ModelConfig> ParseModelConfig(std::string_view text);

// How one rank of `ranks` shares the heads (model.md 8.1). Only for legal `ranks`.
int32_t LocalHeads(const ModelConfig& config, int ranks);
int32_t LocalKvHeads(const ModelConfig& config, int ranks);           // at least 1: replicated
int32_t FirstKvHead(const ModelConfig& config, int rank, int ranks);  // floor(rank * kv / ranks)
int32_t LocalExpertWidth(const ModelConfig& config, int ranks);
// Vocabulary rows [first, first + count) of a rank: ceil division, the last ranks may hold fewer.
struct VocabSlice {
  int64_t first = 0;
  int64_t count = 0;
};
VocabSlice LocalVocab(const ModelConfig& config, int rank, int ranks);

// kInvalidArgument with the number that `ranks` does not divide and the legal values, when the
// network cannot be split so. KV heads: each rank has kv_heads / ranks of them, or ranks / kv_heads
// ranks share one; anything else is refused.
Status CheckTensorParallel(const ModelConfig& config, int ranks);

// s = m_h * f_l of model.md 4.4 for every head of the whole model, in double. Ranks take their
// slice [rank * LocalHeads, ...) of this list; slopes of a rank's own head count would be wrong.
std::vector<double> LightningSlopes(const ModelConfig& config, int layer);

}  // namespace levin
