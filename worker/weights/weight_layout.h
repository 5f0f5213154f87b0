// Which tensors one rank holds, with their types and shapes, before any memory is taken: the list
// behind allocation, digest and planner, so that they cannot disagree (model.md 8.1).
#pragma once

#include <cstdint>
#include <string_view>

#include "common/config/memory_plan.h"
#include "common/config/model_config.h"
#include "worker/weights/model_weights.h"

namespace levin {

struct RankShare {
  int rank = 0;
  int ranks = 1;
};

// This rank's part of the sizes that are split. `ranks` legal for the model.
struct RankSizes {
  RankSizes(const ModelConfig& config, RankShare rank);

  int64_t heads, kv_heads;  // rows: heads * d
  int64_t width;            // of each expert
  VocabSlice vocab;
  int64_t heads_first, kv_first, width_first;  // where they begin in the whole
};

// int8 when the checkpoint's experts are, or when loading makes them so.
ExpertFormat ExpertFormatFor(const ModelConfig& config, bool quantize_experts_int8);

// Every view with its type and shape but without memory (data null). A tied head stays empty: it
// has no bytes of its own.
ModelWeights LayOutWeights(const ModelConfig& config, RankShare rank, ExpertFormat experts);

// What planner and allocator agree on: the bytes of that layout by kind.
WeightBytes WeightBytesOf(const ModelConfig& config, RankShare rank, ExpertFormat experts);

// The members of LayerWeights and where their bytes count.
struct LayerPart {
  std::string_view name;
  TensorView LayerWeights::*view;
  int64_t WeightBytes::*kind;
};
inline constexpr LayerPart kLayerParts[] = {
    {"input_norm", &LayerWeights::input_norm, &WeightBytes::norms},
    {"post_attention_norm", &LayerWeights::post_attention_norm, &WeightBytes::norms},
    {"qkv", &LayerWeights::qkv, &WeightBytes::attention},
    {"output_gate", &LayerWeights::output_gate, &WeightBytes::attention},
    {"lightning_norm", &LayerWeights::lightning_norm, &WeightBytes::norms},
    {"out", &LayerWeights::out, &WeightBytes::attention},
    {"q", &LayerWeights::q, &WeightBytes::attention},
    {"k", &LayerWeights::k, &WeightBytes::attention},
    {"v", &LayerWeights::v, &WeightBytes::attention},
    {"o", &LayerWeights::o, &WeightBytes::attention},
    {"gate", &LayerWeights::gate, &WeightBytes::gates},
    {"w13", &LayerWeights::w13, &WeightBytes::experts},
    {"w2", &LayerWeights::w2, &WeightBytes::experts},
    {"w13_scale", &LayerWeights::w13_scale, &WeightBytes::scales},
    {"w2_scale", &LayerWeights::w2_scale, &WeightBytes::scales},
};

// visit(name, kind, view) for every tensor of the rank in one fixed order, empty views included.
// Weights: ModelWeights, const or not.
template <typename Weights, typename Visit>
void VisitWeights(Weights& weights, Visit visit) {
  visit(std::string_view("embedding"), &WeightBytes::embedding, weights.embedding);
  visit(std::string_view("head"), &WeightBytes::head, weights.head);
  visit(std::string_view("final_norm"), &WeightBytes::norms, weights.final_norm);
  for (auto& layer : weights.layers) {
    for (const LayerPart& part : kLayerParts) visit(part.name, part.kind, layer.*part.view);
  }
}

}  // namespace levin
