// Which tensors a checkpoint of this network holds, by name, shape and type (model.md 6.1, 6.4).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/config/model_config.h"

namespace levin {

// The role of a stored tensor; what becomes of it is in placement.h.
enum class WeightPiece : uint8_t {
  kEmbedding,
  kHead,
  kFinalNorm,
  kInputNorm,
  kPostAttentionNorm,
  kQkv,
  kOutputGate,
  kLightningNorm,
  kOut,
  kQ,
  kK,
  kV,
  kO,
  kGate,
  kW1,
  kW3,
  kW2,  // of one expert
  kW1Scale,
  kW3Scale,
  kW2Scale,  // of one expert, stored int8 only
  kGateUp,
  kDown,  // of all experts: [E, 2I, H] (w1 rows, then w3), [E, H, I]
};

bool IsScale(WeightPiece piece);

// Which stored types a piece may have.
enum class StoredAs : uint8_t {
  kBF16,
  kI8,
  kF32,      // scales
  kWidened,  // BF16, F16 or F32: becomes float32 without loss (norms and gates)
};
std::string_view Name(StoredAs type);  // "BF16, F16 or F32"
bool Accepts(StoredAs type, std::string_view dtype);

struct NeededTensor {
  std::string name;
  std::vector<int64_t> shape;  // a scale may also be stored as [rows, 1]
  WeightPiece piece;
  StoredAs type;
  int32_t layer = -1;
  int32_t expert = -1;
};

// All of them. `has` tells which names the checkpoint holds: it decides, layer by layer, between
// the per-expert names and the stacked ones, and between the two names of the gate.
std::vector<NeededTensor> NeededTensors(const ModelConfig& config,
                                        const std::function<bool(std::string_view)>& has);

// Known names that are recomputed or have no use here: rotary inv_freq, the decay buffers of the
// native class in lightning layers, the head of a model whose head is the embedding.
bool IsIgnored(std::string_view name, const ModelConfig& config);

}  // namespace levin
