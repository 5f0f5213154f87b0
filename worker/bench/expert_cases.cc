#include <algorithm>
#include <vector>

#include "worker/bench/kernel_case.h"
#include "worker/bench/random_tensor.h"

namespace levin {
namespace {

constexpr int64_t kExperts = 8, kChosen = 2;
constexpr int64_t kTokens[] = {1, 8, 64, 512};
constexpr int64_t kManyTokens = 64;

struct ExpertShape {
  int64_t hidden, width;
};
constexpr ExpertShape kShapes[] = {{6144, 1152}, {1024, 1536}};

// The layers of a network: each with its own experts, so that one after the other comes from
// memory.
struct ExpertLayers {
  RandomMatrices w1, w3, w2;
  size_t count;

  ExpertLayers(Backend& backend, const ExpertShape& shape, DType weights)
      : w1(MakeMatrices(backend, weights, shape.width, shape.hidden, kBeyondCaches / 3, kExperts)),
        w3(MakeMatrices(backend, weights, shape.width, shape.hidden, kBeyondCaches / 3, kExperts)),
        w2(MakeMatrices(backend, weights, shape.hidden, shape.width, kBeyondCaches / 3, kExperts)),
        count(w1.matrices.size() / kExperts) {}

  static std::span<const WeightMatrix> Of(const RandomMatrices& all, size_t layer) {
    return std::span(all.matrices).subspan(layer * kExperts, kExperts);
  }
};

// Tokens of a step choose evenly: token t takes t and t + 3, modulo the experts.
void OneCase(Backend& backend, const ExpertShape& shape, const ExpertLayers& layers, DType weights,
             DType act, int64_t tokens, const CaseSink& sink) {
  const OwnedTensor x = RandomTensor(act, {tokens, shape.hidden});
  const OwnedTensor chosen = EmptyTensor(DType::kI32, {tokens, kChosen});
  const OwnedTensor share = RandomTensor(DType::kF32, {tokens, kChosen});
  const OwnedTensor hidden = EmptyTensor(act, {tokens * kChosen, shape.width});
  const OwnedTensor order = EmptyTensor(DType::kI32, {2 * tokens * kChosen + kExperts + 1});
  const OwnedTensor out = EmptyTensor(DType::kF32, {tokens, shape.hidden});
  for (int64_t t = 0; t < tokens; ++t) {
    chosen.view.as<int32_t>()[2 * t] = static_cast<int32_t>(t % kExperts);
    chosen.view.as<int32_t>()[2 * t + 1] = static_cast<int32_t>((t + 3) % kExperts);
  }
  const bool many = tokens >= kManyTokens;
  const size_t count = many ? 1 : layers.count;
  const double per_expert = 3.0 * static_cast<double>(shape.hidden * shape.width);
  const double used = static_cast<double>(std::min(kExperts, tokens * kChosen));
  const double bytes = per_expert * used * static_cast<double>(ByteSize(weights));
  const double operations = per_expert * 2.0 * static_cast<double>(tokens * kChosen);
  sink({"ExpertMatMul, 2 of 8", std::to_string(shape.hidden) + " by " + std::to_string(shape.width),
        WeightName(weights), ActivationName(act), tokens, RoofKind::kRead,
        bytes * static_cast<double>(count), operations * static_cast<double>(count), [&] {
          for (size_t layer = 0; layer < count; ++layer) {
            backend.kernels().ExpertMatMul({x.view, ExpertLayers::Of(layers.w1, layer),
                                            ExpertLayers::Of(layers.w3, layer),
                                            ExpertLayers::Of(layers.w2, layer), chosen.view,
                                            share.view, hidden.view, order.view, out.view});
          }
        }});
}

}  // namespace

void ExpertCases(Backend& backend, const CaseSink& sink) {
  for (const ExpertShape& shape : kShapes) {
    for (const DType weights : {DType::kBF16, DType::kI8}) {
      const ExpertLayers layers(backend, shape, weights);
      for (const DType act : {DType::kF32, DType::kBF16}) {
        for (const int64_t tokens : kTokens) {
          OneCase(backend, shape, layers, weights, act, tokens, sink);
        }
      }
    }
  }
}

}  // namespace levin
