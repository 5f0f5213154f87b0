#include "worker/model/workspace.h"

namespace levin {

Workspace::Workspace(const ModelConfig& config, int ranks, DType act, int64_t tokens_max,
                     Backend& backend) {
  const int64_t t = tokens_max;
  const int64_t d = config.head_dim;
  const int64_t h = LocalHeads(config, ranks);
  const int64_t g = LocalKvHeads(config, ranks);
  const int64_t k = config.experts_per_token;
  const auto take = [&](DType dtype, const Shape& shape) { return Take(backend, dtype, shape); };

  normed = take(DType::kF32, {t, config.hidden});
  y = act == DType::kF32 ? normed : take(act, {t, config.hidden});
  sum = take(DType::kF32, {t, config.hidden});
  update = take(DType::kF32, {t, config.hidden});
  qkv = take(DType::kF32, {t, h, 3 * d});
  heads = take(DType::kF32, {t, h, d});
  gate = take(DType::kF32, {t, h * d});
  mixed = take(act, {t, h * d});
  sum_squares = take(DType::kF32, {t});
  keys = take(DType::kF32, {t, g, d});
  values = take(DType::kF32, {t, g, d});
  pieces = take(DType::kI32, {t});
  router_logits = take(DType::kF32, {t, config.experts});
  experts = take(DType::kI32, {t, k});
  expert_weights = take(DType::kF32, {t, k});
  expert_hidden = take(act, {t * k, LocalExpertWidth(config, ranks)});
  expert_order = take(DType::kI32, {2 * t * k + config.experts + 1});
}

TensorView Workspace::Take(Backend& backend, DType dtype, const Shape& shape) {
  buffers_.push_back(backend.Allocate(shape.elements() * ByteSize(dtype)));
  return buffers_.back().View(dtype, shape);
}

}  // namespace levin
