#include "worker/weights/needed_tensors.h"

#include <charconv>
#include <utility>

namespace levin {
namespace {

class Lister final {
 public:
  Lister(const ModelConfig& config, const std::function<bool(std::string_view)>& has)
      : config_(config), has_(has) {}

  std::vector<NeededTensor> All() && {
    Add("model.embed_tokens.weight", {config_.vocab, H()}, WeightPiece::kEmbedding,
        StoredAs::kBF16);
    Add("model.norm.weight", {H()}, WeightPiece::kFinalNorm, StoredAs::kWidened);
    if (!config_.tie_word_embeddings) {
      Add("lm_head.weight", {config_.vocab, H()}, WeightPiece::kHead, StoredAs::kBF16);
    }
    for (layer_ = 0; layer_ < config_.layers; ++layer_) Layer();
    return std::move(needed_);
  }

 private:
  int64_t H() const { return config_.hidden; }
  int64_t I() const { return config_.expert_width; }

  void Add(std::string name, std::vector<int64_t> shape, WeightPiece piece, StoredAs type,
           int32_t expert = -1) {
    needed_.push_back({std::move(name), std::move(shape), piece, type, layer_, expert});
  }

  void Layer() {
    const std::string layer = "model.layers." + std::to_string(layer_) + ".";
    Add(layer + "input_layernorm.weight", {H()}, WeightPiece::kInputNorm, StoredAs::kWidened);
    Add(layer + "post_attention_layernorm.weight", {H()}, WeightPiece::kPostAttentionNorm,
        StoredAs::kWidened);
    const bool lightning =
        config_.layer_kinds[static_cast<size_t>(layer_)] == LayerKind::kLightning;
    lightning ? Lightning(layer + "self_attn.") : Softmax(layer + "self_attn.");
    Experts(layer);
  }

  void Lightning(const std::string& attention) {
    const int64_t width = int64_t{config_.heads} * config_.head_dim;
    Add(attention + "qkv_proj.weight", {3 * width, H()}, WeightPiece::kQkv, StoredAs::kBF16);
    Add(attention + "output_gate.weight", {width, H()}, WeightPiece::kOutputGate, StoredAs::kBF16);
    Add(attention + "norm.weight", {width}, WeightPiece::kLightningNorm, StoredAs::kWidened);
    Add(attention + "out_proj.weight", {H(), width}, WeightPiece::kOut, StoredAs::kBF16);
  }

  void Softmax(const std::string& attention) {
    const int64_t width = int64_t{config_.heads} * config_.head_dim;
    const int64_t kv_width = int64_t{config_.kv_heads} * config_.head_dim;
    Add(attention + "q_proj.weight", {width, H()}, WeightPiece::kQ, StoredAs::kBF16);
    Add(attention + "k_proj.weight", {kv_width, H()}, WeightPiece::kK, StoredAs::kBF16);
    Add(attention + "v_proj.weight", {kv_width, H()}, WeightPiece::kV, StoredAs::kBF16);
    Add(attention + "o_proj.weight", {H(), width}, WeightPiece::kO, StoredAs::kBF16);
  }

  void Experts(const std::string& layer) {
    const std::string stacked_gate = layer + "mlp.gate.weight";
    const std::string gate = layer + "block_sparse_moe.gate.weight";
    Add(has_(stacked_gate) && !has_(gate) ? stacked_gate : gate, {config_.experts, H()},
        WeightPiece::kGate, StoredAs::kWidened);
    const std::string gate_up = layer + "mlp.experts.gate_up_proj";
    const std::string down = layer + "mlp.experts.down_proj";
    if (!config_.experts_stored_int8 && (has_(gate_up) || has_(down))) {
      Add(gate_up, {config_.experts, 2 * I(), H()}, WeightPiece::kGateUp, StoredAs::kBF16);
      Add(down, {config_.experts, H(), I()}, WeightPiece::kDown, StoredAs::kBF16);
      return;
    }
    for (int32_t e = 0; e < config_.experts; ++e) {
      const std::string expert = layer + "block_sparse_moe.experts." + std::to_string(e) + ".";
      Matrix(expert + "w1", {I(), H()}, WeightPiece::kW1, WeightPiece::kW1Scale, e);
      Matrix(expert + "w3", {I(), H()}, WeightPiece::kW3, WeightPiece::kW3Scale, e);
      Matrix(expert + "w2", {H(), I()}, WeightPiece::kW2, WeightPiece::kW2Scale, e);
    }
  }

  void Matrix(const std::string& name, std::vector<int64_t> shape, WeightPiece weight,
              WeightPiece scale, int32_t expert) {
    const int64_t rows = shape[0];
    const bool int8 = config_.experts_stored_int8;
    Add(name + ".weight", std::move(shape), weight, int8 ? StoredAs::kI8 : StoredAs::kBF16, expert);
    if (int8) Add(name + ".weight_scale", {rows}, scale, StoredAs::kF32, expert);
  }

  const ModelConfig& config_;
  const std::function<bool(std::string_view)>& has_;
  std::vector<NeededTensor> needed_;
  int32_t layer_ = -1;
};

constexpr std::string_view kDecayBuffers[] = {"slope_rate", "query_decay", "key_decay",
                                              "diagonal_decay"};

bool IsDecayBuffer(std::string_view name, const ModelConfig& config) {
  constexpr std::string_view kPrefix = "model.layers.";
  constexpr std::string_view kMiddle = ".self_attn.";
  if (!name.starts_with(kPrefix)) return false;
  name.remove_prefix(kPrefix.size());
  int32_t layer = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (error != std::errc() || layer < 0 || layer >= config.layers ||
      config.layer_kinds[static_cast<size_t>(layer)] != LayerKind::kLightning) {
    return false;
  }
  name.remove_prefix(static_cast<size_t>(end - name.data()));
  if (!name.starts_with(kMiddle)) return false;
  name.remove_prefix(kMiddle.size());
  for (std::string_view buffer : kDecayBuffers) {
    if (name == buffer) return true;
  }
  return false;
}

}  // namespace

bool IsScale(WeightPiece piece) {
  return piece == WeightPiece::kW1Scale || piece == WeightPiece::kW3Scale ||
         piece == WeightPiece::kW2Scale;
}

std::string_view Name(StoredAs type) {
  switch (type) {
    case StoredAs::kBF16:
      return "BF16";
    case StoredAs::kI8:
      return "I8";
    case StoredAs::kF32:
      return "F32";
    case StoredAs::kWidened:
      return "BF16, F16 or F32";
  }
  return "?";
}

bool Accepts(StoredAs type, std::string_view dtype) {
  if (type != StoredAs::kWidened) return dtype == Name(type);
  return dtype == "BF16" || dtype == "F16" || dtype == "F32";
}

std::vector<NeededTensor> NeededTensors(const ModelConfig& config,
                                        const std::function<bool(std::string_view)>& has) {
  return Lister(config, has).All();
}

bool IsIgnored(std::string_view name, const ModelConfig& config) {
  if (name.ends_with("rotary_emb.inv_freq")) return true;
  if (config.tie_word_embeddings && name == "lm_head.weight") return true;
  return IsDecayBuffer(name, config);
}

}  // namespace levin
