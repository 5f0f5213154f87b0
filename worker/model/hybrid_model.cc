#include "worker/model/hybrid_model.h"

#include <optional>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "worker/backend/rope.h"
#include "worker/model/embedding.h"
#include "worker/model/lightning_attention.h"
#include "worker/model/moe.h"
#include "worker/model/softmax_attention.h"
#include "worker/model/step_context.h"
#include "worker/model/workspace.h"

namespace levin {
namespace {

struct Layer {
  std::optional<LightningAttention> lightning;  // one of the two
  std::optional<SoftmaxAttention> softmax;
  std::optional<Moe> moe;
  TensorView input_norm, post_attention_norm;
  ModelConfig::Residual attention_residual;

  Status Attention(const StepContext& step) const {
    return lightning ? lightning->Run(step) : softmax->Run(step);
  }
};

}  // namespace

struct HybridModel::Parts {
  Parts(const ModelConfig& config, ModelWeights weights, std::unique_ptr<Backend> backend,
        Collective& collective, const HybridModelOptions& options);

  // y = Norm(alpha * residual + beta * update); the sum is kept where pre-norm or a probe needs it.
  void Norm(const StepContext& step, bool first, ModelConfig::Residual factors,
            const TensorView& weight) const;
  Status RunLayers(const StepContext& step, const StepBatch& batch);
  void CheckBatch(const StepBatch& batch) const;
  RowTable Rows(const StepBatch& batch);
  void Show(const StepContext& step, std::string_view what, int layer, const TensorView& tensor,
            const StepBatch& batch) const;
  Status ShowEnd(const StepContext& step, const StepBatch& batch);

  const ModelConfig config;
  ModelWeights weights;
  Collective& collective;
  const HybridModelOptions options;
  const std::unique_ptr<Backend> backend;
  const Workspace workspace;
  const std::vector<float> inv_freq;
  Embedding embedding;
  std::vector<Layer> layers;
  Head head;
  Buffer state_memory, kv_memory;
  TensorView states, kv;
  std::vector<int32_t> token_row;
  std::vector<int64_t> token_position;

  Probe* probe = nullptr;
  std::vector<float> probe_logits;
  std::vector<int32_t> every_token;  // 0, 1, 2, ...
};

HybridModel::Parts::Parts(const ModelConfig& config_in, ModelWeights weights_in,
                          std::unique_ptr<Backend> backend_in, Collective& collective_in,
                          const HybridModelOptions& options_in)
    : config(config_in),
      weights(std::move(weights_in)),
      collective(collective_in),
      options(options_in),
      backend(std::move(backend_in)),
      workspace(config, collective.ranks(), options.activations, options.tokens_per_step_max,
                *backend),
      inv_freq(RopeInverseFrequencies(config.rope_theta, config.rotary_dim)),
      embedding(weights),
      head(config, collective.ranks(), weights, options.activations, options.rows_per_step_max,
           *backend) {
  const int rank = collective.rank();
  const int ranks = collective.ranks();
  int lightning_layers = 0;
  int softmax_layers = 0;
  layers.resize(config.layers);
  for (int l = 0; l < config.layers; ++l) {
    const LayerWeights& from = weights.layers[l];
    Layer& layer = layers[l];
    if (config.layer_kinds[l] == LayerKind::kLightning) {
      layer.lightning.emplace(config, l, lightning_layers++, rank, ranks, from, *backend);
      layer.attention_residual = config.lightning;
    } else {
      layer.softmax.emplace(config, softmax_layers++, ranks, from, inv_freq, *backend);
      layer.attention_residual = config.softmax;
    }
    layer.moe.emplace(from, options.round_router_logits, *backend);
    layer.input_norm = from.input_norm;
    layer.post_attention_norm = from.post_attention_norm;
  }
  const int64_t d = config.head_dim;
  const Shape state_shape{options.slots, lightning_layers, LocalHeads(config, ranks), d * d};
  const Shape kv_shape{options.blocks, 2 * softmax_layers, LocalKvHeads(config, ranks),
                       kKvBlockTokens * d};
  state_memory = backend->Allocate(state_shape.elements() * ByteSize(DType::kF32));
  kv_memory = backend->Allocate(kv_shape.elements() * ByteSize(options.activations));
  states = state_memory.View(DType::kF32, state_shape);
  kv = kv_memory.View(options.activations, kv_shape);
  token_row.reserve(options.tokens_per_step_max);
  token_position.reserve(options.tokens_per_step_max);
}

void HybridModel::Parts::Norm(const StepContext& step, bool first, ModelConfig::Residual factors,
                              const TensorView& weight) const {
  RmsNormArgs args;
  args.update = step.Used(workspace.update);
  args.normed = step.Used(workspace.normed);
  args.out = step.Used(workspace.y);
  const bool keep_sum = !config.postnorm || probe != nullptr;
  if (keep_sum) args.sum = step.Used(workspace.sum);
  // Post-norm: the branch carries the normalised value, nothing else lives on (model.md 2.2).
  if (!first) args.residual = config.postnorm ? args.normed : args.sum;
  args.alpha = static_cast<float>(factors.alpha);
  args.beta = static_cast<float>(factors.beta);
  args.weight = weight;
  args.eps = config.rms_norm_eps;
  step.kernels.RmsNorm(args);
}

Status HybridModel::Parts::RunLayers(const StepContext& step, const StepBatch& batch) {
  RETURN_IF_ERROR(embedding.Run(step, batch.tokens));
  Norm(step, true, {}, layers[0].input_norm);
  for (size_t l = 0; l < layers.size(); ++l) {
    const Layer& layer = layers[l];
    const int number = static_cast<int>(l);
    RETURN_IF_ERROR(layer.Attention(step));
    Norm(step, false, layer.attention_residual, layer.post_attention_norm);
    Show(step, "after_attention", number, workspace.sum, batch);
    RETURN_IF_ERROR(layer.moe->Run(step));
    Show(step, "router_logits", number, workspace.router_logits, batch);
    Show(step, "experts", number, workspace.experts, batch);
    const bool last = l + 1 == layers.size();
    Norm(step, false, config.mlp, last ? weights.final_norm : layers[l + 1].input_norm);
    Show(step, "after_mlp", number, workspace.sum, batch);
  }
  return Status::Ok();
}

void HybridModel::Parts::CheckBatch(const StepBatch& batch) const {
  const int32_t rows = batch.row_count();
  CHECK_LE(batch.token_count(), options.tokens_per_step_max);
  CHECK(static_cast<int32_t>(batch.row_first.size()) == rows + 1 &&
            static_cast<int32_t>(batch.block_first.size()) == rows + 1 &&
            static_cast<int32_t>(batch.row_position.size()) == rows &&
            static_cast<int32_t>(batch.row_fresh.size()) == rows &&
            static_cast<int32_t>(batch.row_stepwise.size()) == rows,
        rows);
  CHECK(batch.row_first.front() == 0 && batch.row_first.back() == batch.token_count(),
        batch.row_first.back(), batch.token_count());
  for (int32_t slot : batch.row_slot) CHECK(slot >= 0 && slot < options.slots, slot);
  for (int32_t block : batch.block_ids) CHECK(block >= 0 && block < options.blocks, block);
  for (int32_t token : batch.logit_tokens) {
    CHECK(token >= 0 && token < batch.token_count(), token);
  }
}

RowTable HybridModel::Parts::Rows(const StepBatch& batch) {
  token_row.clear();
  token_position.clear();
  for (int32_t row = 0; row < batch.row_count(); ++row) {
    for (int32_t t = batch.row_first[row]; t < batch.row_first[row + 1]; ++t) {
      token_row.push_back(row);
      token_position.push_back(batch.row_position[row] + t - batch.row_first[row]);
    }
  }
  return {batch.row_first, batch.row_position, batch.row_slot,
          batch.row_fresh, batch.row_stepwise, batch.block_first,
          batch.block_ids, token_row,          token_position};
}

void HybridModel::Parts::Show(const StepContext& step, std::string_view what, int layer,
                              const TensorView& tensor, const StepBatch& batch) const {
  if (probe != nullptr) probe->OnTensor(what, layer, step.Used(tensor), batch);
}

Status HybridModel::Parts::ShowEnd(const StepContext& step, const StepBatch& batch) {
  Show(step, "final_norm", -1, workspace.normed, batch);
  if (probe_logits.empty()) return Status::Ok();
  const auto tokens = static_cast<size_t>(step.tokens());
  const std::span<float> logits = std::span(probe_logits).first(tokens * config.vocab);
  RETURN_IF_ERROR(head.Run(step, std::span(every_token).first(tokens), logits));
  probe->OnLogits(
      {DType::kF32, {step.tokens(), config.vocab}, reinterpret_cast<std::byte*>(logits.data())},
      batch);
  return Status::Ok();
}

Result<std::unique_ptr<HybridModel>> HybridModel::Create(const ModelConfig& config,
                                                         ModelWeights weights,
                                                         std::unique_ptr<Backend> backend,
                                                         Collective& collective,
                                                         const HybridModelOptions& options) {
  RETURN_ERROR_IF(CheckTensorParallel(config, collective.ranks()));
  if (config.head_dim > kHeadDimMax) {
    return Error(InvalidArgument("head_dim is " + std::to_string(config.head_dim) +
                                 ", expected at most " + std::to_string(kHeadDimMax)));
  }
  if (config.heads / config.kv_heads > kHeadsPerKvHeadMax) {
    return Error(InvalidArgument("num_attention_heads is " + std::to_string(config.heads) +
                                 " with " + std::to_string(config.kv_heads) +
                                 " num_key_value_heads, expected at most " +
                                 std::to_string(kHeadsPerKvHeadMax) + " heads for each"));
  }
  CHECK(options.activations == DType::kF32 || options.activations == DType::kBF16,
        Name(options.activations));
  CHECK_EQ(static_cast<int>(weights.layers.size()), config.layers);
  auto parts =
      std::make_unique<Parts>(config, std::move(weights), std::move(backend), collective, options);
  return std::unique_ptr<HybridModel>(new HybridModel(std::move(parts)));
}

HybridModel::HybridModel(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
HybridModel::~HybridModel() = default;

Status HybridModel::Run(const StepBatch& batch, std::span<float> logits) {
  Parts& p = *parts_;
  CHECK_EQ(logits.size(), batch.logit_tokens.size() * p.config.vocab);
  if (batch.tokens.empty()) return Status::Ok();
  p.CheckBatch(batch);
  const StepContext step{p.backend->kernels(), p.collective, p.workspace, p.states, p.kv,
                         p.Rows(batch)};
  RETURN_IF_ERROR(p.RunLayers(step, batch));
  RETURN_IF_ERROR(p.head.Run(step, batch.logit_tokens, logits));
  return p.probe == nullptr ? Status::Ok() : p.ShowEnd(step, batch);
}

int32_t HybridModel::vocab_size() const { return parts_->config.vocab; }

void HybridModel::set_probe(Probe* probe) {
  Parts& p = *parts_;
  p.probe = probe;
  p.probe_logits.clear();
  p.every_token.clear();
  if (probe == nullptr || !probe->wants_logits()) return;
  const auto tokens = static_cast<size_t>(p.options.tokens_per_step_max);
  p.probe_logits.resize(tokens * p.config.vocab);
  for (size_t t = 0; t < tokens; ++t) p.every_token.push_back(static_cast<int32_t>(t));
}

TensorView HybridModel::states() const { return parts_->states; }
TensorView HybridModel::kv() const { return parts_->kv; }

}  // namespace levin
