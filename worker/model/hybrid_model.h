// The network of model.md 2: embedding, layers of attention and experts with post-norm residuals,
// head. One rank's shard of it, with the rank's states and KV. Written once over the kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "common/config/model_config.h"
#include "worker/backend/backend.h"
#include "worker/comm/collective.h"
#include "worker/model/network.h"
#include "worker/model/probe.h"
#include "worker/weights/model_weights.h"

namespace levin {

struct HybridModelOptions {
  DType activations = DType::kBF16;  // or kF32; KV has the same type, states are always f32
  int32_t slots = 1;                 // state slots
  int64_t blocks = 1;                // KV blocks of 64 tokens
  int32_t tokens_per_step_max = 8192;
  int32_t rows_per_step_max = 256;   // more logits than this in one step go in pieces
  bool round_router_logits = false;  // to bf16 before routing, as the references do (model.md 5.1)
};

// One thread. All memory is taken by Create; what Run needs does not grow.
class HybridModel final : public Network {
 public:
  // The collective must live longer; weights are moved in and repacked in their place.
  // kInvalidArgument when the network cannot be split over collective.ranks(), or its heads are
  // larger than the kernels take.
  static Result<std::unique_ptr<HybridModel>> Create(const ModelConfig& config,
                                                     ModelWeights weights,
                                                     std::unique_ptr<Backend> backend,
                                                     Collective& collective,
                                                     const HybridModelOptions& options);
  ~HybridModel() override;

  Status Run(const StepBatch& batch, std::span<float> logits) override;
  int32_t vocab_size() const override;

  // Null: nobody looks. The probe must live longer. Before the first step; takes memory for the
  // logits of every token when the probe wants them.
  void set_probe(Probe* probe);

  // This rank's part, as of the last step: [slots, lightning layers, heads, d * d] f32 (key, then
  // value), and [blocks, 2 * softmax layers, KV heads, 64 * d] of the activations' type. Copies of
  // slots and blocks between steps go through these.
  TensorView states() const;
  TensorView kv() const;

 private:
  struct Parts;
  explicit HybridModel(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace levin
