#include "tests/system/long_model.h"

#include <bit>
#include <boost/json.hpp>
#include <cmath>
#include <fstream>

namespace levin::testing {
namespace {

class SplitMix final {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  double Uniform() { return (static_cast<double>(Next() >> 11) + 0.5) * 0x1p-53; }
  double Normal() {
    const double radius = std::sqrt(-2 * std::log(Uniform()));
    return radius * std::cos(2 * M_PI * Uniform());
  }

 private:
  uint64_t state_;
};

// The nearest bf16 below: which one does not matter, only that the file holds it exactly.
uint16_t Bf16Bits(double value) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16);
}
double FromBits(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// Norm weights are vectors, kept as one row.
bool IsNorm(const std::string& name) { return name.find("norm") != std::string::npos; }

}  // namespace

LongModel::LongModel(uint64_t seed) {
  SplitMix random(seed);
  const auto add = [&](const std::string& name, int64_t rows, int64_t cols, double gain) {
    LongMatrix matrix{rows, cols, {}};
    const double scale = gain / std::sqrt(static_cast<double>(cols));
    for (int64_t i = 0; i < rows * cols; ++i)
      matrix.values.push_back(FromBits(Bf16Bits(scale * random.Normal())));
    weights_[name] = std::move(matrix);
  };
  const auto add_norm = [&](const std::string& name, int64_t width) {
    LongMatrix norm{1, width, {}};
    for (int64_t i = 0; i < width; ++i)
      norm.values.push_back(FromBits(Bf16Bits(0.5 + random.Uniform())));
    weights_[name] = std::move(norm);
  };
  add("model.embed_tokens.weight", kVocab, kHidden, std::sqrt(kHidden));
  add("lm_head.weight", kVocab, kHidden, 3);
  add_norm("model.norm.weight", kHidden);
  for (int layer = 0; layer < 2; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    add_norm(prefix + "input_layernorm.weight", kHidden);
    add_norm(prefix + "post_attention_layernorm.weight", kHidden);
    const std::string attention = prefix + "self_attn.";
    if (layer == 0) {
      add(attention + "qkv_proj.weight", 3 * kDim, kHidden, 1);
      add(attention + "output_gate.weight", kDim, kHidden, 1);
      add_norm(attention + "norm.weight", kDim);
      add(attention + "out_proj.weight", kHidden, kDim, 1);
    } else {
      // Sharp scores: of a million positions some hundreds matter, anywhere.
      add(attention + "q_proj.weight", kDim, kHidden, 2.3);
      add(attention + "k_proj.weight", kDim, kHidden, 2.3);
      add(attention + "v_proj.weight", kDim, kHidden, 1);
      add(attention + "o_proj.weight", kHidden, kDim, 1);
    }
    add(prefix + "block_sparse_moe.gate.weight", kExperts, kHidden, 2);
    for (int64_t e = 0; e < kExperts; ++e) {
      const std::string expert = prefix + "block_sparse_moe.experts." + std::to_string(e) + ".";
      add(expert + "w1.weight", kWidth, kHidden, 1);
      add(expert + "w3.weight", kWidth, kHidden, 1);
      add(expert + "w2.weight", kHidden, kWidth, 1);
    }
  }
}

void LongModel::Write(const std::filesystem::path& folder) const {
  namespace json = boost::json;
  const json::object config = {{"architectures", {"MiniMaxM1ForCausalLM"}},
                               {"model_type", "minimax_m1"},
                               {"max_position_embeddings", 10240000},
                               {"num_hidden_layers", 2},
                               {"attn_type_list", {0, 1}},
                               {"hidden_size", kHidden},
                               {"num_attention_heads", 1},
                               {"num_key_value_heads", 1},
                               {"head_dim", kDim},
                               {"rotary_dim", kRotary},
                               {"rope_theta", kTheta},
                               {"num_local_experts", kExperts},
                               {"num_experts_per_tok", kChosen},
                               {"intermediate_size", kWidth},
                               {"vocab_size", kVocab},
                               {"postnorm", true},
                               {"rms_norm_eps", 1e-5},
                               {"layernorm_linear_attention_alpha", kLightningAlpha},
                               {"layernorm_linear_attention_beta", kLightningBeta},
                               {"layernorm_full_attention_alpha", kSoftmaxAlpha},
                               {"layernorm_full_attention_beta", kSoftmaxBeta},
                               {"layernorm_mlp_alpha", kMlpAlpha},
                               {"layernorm_mlp_beta", kMlpBeta},
                               {"tie_word_embeddings", false}};
  std::ofstream(folder / "config.json") << json::serialize(config);

  json::object header;
  std::string data;
  for (const auto& [name, matrix] : weights_) {
    const size_t begin = data.size();
    const bool gate = name.ends_with("gate.weight") && !name.ends_with("output_gate.weight");
    for (const double value : matrix.values) {
      const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
      // bf16 is the upper half; gates are stored as fp32.
      for (int byte = gate ? 0 : 2; byte < 4; ++byte)
        data += static_cast<char>(bits >> (8 * byte) & 0xff);
    }
    json::array shape = {matrix.rows, matrix.cols};
    if (IsNorm(name)) shape = {matrix.cols};
    header[name] = {
        {"dtype", gate ? "F32" : "BF16"}, {"shape", shape}, {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = json::serialize(header);
  std::ofstream file(folder / "model.safetensors", std::ios::binary);
  const uint64_t size = text.size();
  file.write(reinterpret_cast<const char*>(&size), sizeof size);
  file << text << data;
}

std::vector<int32_t> LongModel::Prompt(int64_t tokens) {
  SplitMix random(7);
  std::vector<int32_t> ids;
  for (int64_t t = 0; t < tokens; ++t)
    ids.push_back(static_cast<int32_t>(random.Next() % static_cast<uint64_t>(kVocab)));
  return ids;
}

}  // namespace levin::testing
