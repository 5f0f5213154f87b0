#include "worker/weights/weight_layout.h"

namespace levin {
namespace {

TensorView Of(DType dtype, const Shape& shape) { return {dtype, shape, nullptr}; }

LayerWeights LayOutLayer(const ModelConfig& config, const RankSizes& own, LayerKind kind,
                         ExpertFormat experts) {
  const int64_t hidden = config.hidden;
  LayerWeights layer;
  layer.input_norm = Of(DType::kF32, {hidden});
  layer.post_attention_norm = Of(DType::kF32, {hidden});
  if (kind == LayerKind::kLightning) {
    layer.qkv = Of(DType::kBF16, {3 * own.heads, hidden});
    layer.output_gate = Of(DType::kBF16, {own.heads, hidden});
    layer.lightning_norm = Of(DType::kF32, {own.heads});
    layer.out = Of(DType::kBF16, {hidden, own.heads});
  } else {
    layer.q = Of(DType::kBF16, {own.heads, hidden});
    layer.k = Of(DType::kBF16, {own.kv_heads, hidden});
    layer.v = Of(DType::kBF16, {own.kv_heads, hidden});
    layer.o = Of(DType::kBF16, {hidden, own.heads});
  }
  layer.gate = Of(DType::kF32, {config.experts, hidden});
  const DType dtype = experts == ExpertFormat::kInt8 ? DType::kI8 : DType::kBF16;
  layer.w13 = Of(dtype, {config.experts, 2 * own.width, hidden});
  layer.w2 = Of(dtype, {config.experts, hidden, own.width});
  if (experts == ExpertFormat::kInt8) {
    layer.w13_scale = Of(DType::kF32, {config.experts, 2 * own.width});
    layer.w2_scale = Of(DType::kF32, {config.experts, hidden});
  }
  return layer;
}

}  // namespace

RankSizes::RankSizes(const ModelConfig& config, RankShare rank)
    : heads(int64_t{LocalHeads(config, rank.ranks)} * config.head_dim),
      kv_heads(int64_t{LocalKvHeads(config, rank.ranks)} * config.head_dim),
      width(LocalExpertWidth(config, rank.ranks)),
      vocab(LocalVocab(config, rank.rank, rank.ranks)),
      heads_first(heads * rank.rank),
      kv_first(int64_t{FirstKvHead(config, rank.rank, rank.ranks)} * config.head_dim),
      width_first(width * rank.rank) {}

ExpertFormat ExpertFormatFor(const ModelConfig& config, bool quantize_experts_int8) {
  return quantize_experts_int8 || config.experts_stored_int8 ? ExpertFormat::kInt8
                                                             : ExpertFormat::kBF16;
}

ModelWeights LayOutWeights(const ModelConfig& config, RankShare rank, ExpertFormat experts) {
  const RankSizes own(config, rank);
  ModelWeights weights;
  weights.expert_format = experts;
  weights.vocab_first = own.vocab.first;
  weights.embedding = Of(DType::kBF16, {own.vocab.count, config.hidden});
  if (!config.tie_word_embeddings) {
    weights.head = Of(DType::kBF16, {own.vocab.count, config.hidden});
  }
  weights.final_norm = Of(DType::kF32, {config.hidden});
  for (LayerKind kind : config.layer_kinds) {
    weights.layers.push_back(LayOutLayer(config, own, kind, experts));
  }
  return weights;
}

WeightBytes WeightBytesOf(const ModelConfig& config, RankShare rank, ExpertFormat experts) {
  WeightBytes bytes;
  const ModelWeights weights = LayOutWeights(config, rank, experts);
  VisitWeights(weights, [&](std::string_view, int64_t WeightBytes::*kind, const TensorView& view) {
    bytes.*kind += view.bytes();
  });
  return bytes;
}

}  // namespace levin
