#include "worker/weights/placement.h"

#include <string>
#include <string_view>
#include <utility>

namespace levin {
namespace {

// Rows [first, first + count) of expert e in a [E, rows, columns] tensor, as a matrix.
TensorView ExpertRows(const TensorView& tensor, int64_t e, int64_t first, int64_t count) {
  TensorView one = tensor.Rows(e, 1);
  one.shape = {tensor.shape[1], tensor.shape[2]};
  return one.Rows(first, count);
}

// A vector as a matrix of one column.
TensorView Column(TensorView vector) {
  vector.shape = {vector.shape[0], 1};
  return vector;
}

class Placer final {
 public:
  Placer(const NeededTensor& tensor, const ModelConfig& config, RankShare rank,
         const ModelWeights& weights)
      : tensor_(tensor),
        config_(config),
        share_(config, rank),
        weights_(weights),
        layer_(tensor.layer < 0 ? nullptr : &weights.layers[static_cast<size_t>(tensor.layer)]),
        quantize_(weights.expert_format == ExpertFormat::kInt8 && !config.experts_stored_int8) {}

  std::vector<WeightBlock> Blocks() const {
    switch (tensor_.piece) {
      case WeightPiece::kEmbedding:
        return {{share_.vocab.first, 0, weights_.embedding}};
      case WeightPiece::kHead:
        return {{share_.vocab.first, 0, weights_.head}};
      case WeightPiece::kFinalNorm:
        return {{0, 0, Column(weights_.final_norm)}};
      case WeightPiece::kInputNorm:
        return {{0, 0, Column(layer_->input_norm)}};
      case WeightPiece::kPostAttentionNorm:
        return {{0, 0, Column(layer_->post_attention_norm)}};
      case WeightPiece::kQkv:
        return {{3 * share_.heads_first, 0, layer_->qkv}};
      case WeightPiece::kOutputGate:
        return {{share_.heads_first, 0, layer_->output_gate}};
      case WeightPiece::kLightningNorm:
        return {{share_.heads_first, 0, Column(layer_->lightning_norm)}};
      case WeightPiece::kOut:
        return {{0, share_.heads_first, layer_->out}};
      case WeightPiece::kQ:
        return {{share_.heads_first, 0, layer_->q}};
      case WeightPiece::kK:
        return {{share_.kv_first, 0, layer_->k}};
      case WeightPiece::kV:
        return {{share_.kv_first, 0, layer_->v}};
      case WeightPiece::kO:
        return {{0, share_.heads_first, layer_->o}};
      case WeightPiece::kGate:
        return {{0, 0, layer_->gate}};
      case WeightPiece::kW1:
        return {W13(tensor_.expert, 0, 0)};
      case WeightPiece::kW3:
        return {W13(tensor_.expert, share_.width, 0)};
      case WeightPiece::kW2:
        return {W2(tensor_.expert, 0)};
      case WeightPiece::kW1Scale:
        return {W13Scale(0)};
      case WeightPiece::kW3Scale:
        return {W13Scale(share_.width)};
      case WeightPiece::kW2Scale:
        return {{0, 0, Column(ExpertScales(layer_->w2_scale, tensor_.expert))}};
      case WeightPiece::kGateUp:
        return GateUp();
      case WeightPiece::kDown:
        return Down();
    }
    return {};
  }

 private:
  // Our rows of w1 (to_row 0) or w3 (to_row width) of one expert; it begins at row `stored` of the
  // stored matrix.
  WeightBlock W13(int64_t expert, int64_t to_row, int64_t stored) const {
    WeightBlock block{stored + share_.width_first, 0,
                      ExpertRows(layer_->w13, expert, to_row, share_.width)};
    if (quantize_) block.scales = ExpertScales(layer_->w13_scale, expert).as<float>() + to_row;
    return block;
  }
  WeightBlock W2(int64_t expert, int64_t stored) const {
    WeightBlock block{stored, share_.width_first,
                      ExpertRows(layer_->w2, expert, 0, config_.hidden)};
    if (quantize_) block.scales = ExpertScales(layer_->w2_scale, expert).as<float>();
    return block;
  }
  WeightBlock W13Scale(int64_t to_row) const {
    const TensorView scales = ExpertScales(layer_->w13_scale, tensor_.expert);
    return {share_.width_first, 0, Column(scales.Rows(to_row, share_.width))};
  }
  static TensorView ExpertScales(const TensorView& scales, int64_t expert) {
    TensorView one = scales.Rows(expert, 1);
    one.shape = {scales.shape[1]};
    return one;
  }
  std::vector<WeightBlock> GateUp() const {
    std::vector<WeightBlock> blocks;
    for (int64_t e = 0; e < config_.experts; ++e) {
      const int64_t w1 = e * 2 * config_.expert_width;
      blocks.push_back(W13(e, 0, w1));
      blocks.push_back(W13(e, share_.width, w1 + config_.expert_width));
    }
    return blocks;
  }
  std::vector<WeightBlock> Down() const {
    std::vector<WeightBlock> blocks;
    for (int64_t e = 0; e < config_.experts; ++e) blocks.push_back(W2(e, e * config_.hidden));
    return blocks;
  }

  const NeededTensor& tensor_;
  const ModelConfig& config_;
  const RankSizes share_;
  const ModelWeights& weights_;
  const LayerWeights* layer_;
  const bool quantize_;
};

}  // namespace

Result<ModelWeights> AllocateWeights(const ModelConfig& config, RankShare rank,
                                     ExpertFormat experts) {
  ModelWeights weights = LayOutWeights(config, rank, experts);
  Status status;
  VisitWeights(weights, [&](std::string_view, int64_t WeightBytes::*, TensorView& view) {
    if (view.shape.rank() == 0 || !status.ok()) return;
    Result<Buffer> buffer = Buffer::AllocateUnset(view.bytes());
    if (!buffer) {
      status = std::move(buffer).error().Annotate("weights, after " +
                                                  std::to_string(weights.bytes) + " bytes of them");
      return;
    }
    view.data = buffer->data();
    weights.bytes += buffer->bytes();
    weights.buffers.push_back(*std::move(buffer));
  });
  RETURN_ERROR_IF(status);
  if (config.tie_word_embeddings) weights.head = weights.embedding;
  return weights;
}

std::vector<WeightBlock> Place(const NeededTensor& tensor, const ModelConfig& config,
                               RankShare rank, const ModelWeights& weights) {
  return Placer(tensor, config, rank, weights).Blocks();
}

}  // namespace levin
