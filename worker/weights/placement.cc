#include "worker/weights/placement.h"

#include <utility>

namespace levin {
namespace {

// Gives views of fresh buffers and remembers the first failure.
class Allocator final {
 public:
  explicit Allocator(ModelWeights& weights) : weights_(weights) {}

  TensorView Take(DType dtype, const Shape& shape) {
    if (!status_.ok()) return {};
    Result<Buffer> buffer = Buffer::Allocate(shape.elements() * ByteSize(dtype));
    if (!buffer) {
      status_ = std::move(buffer).error().Annotate(
          "weights, after " + std::to_string(weights_.bytes) + " bytes of them");
      return {};
    }
    weights_.bytes += buffer->bytes();
    weights_.buffers.push_back(*std::move(buffer));
    return weights_.buffers.back().View(dtype, shape);
  }
  const Status& status() const { return status_; }

 private:
  ModelWeights& weights_;
  Status status_;
};

// This rank's part of the sizes that are split.
struct Share {
  Share(const ModelConfig& config, RankShare rank)
      : heads(int64_t{LocalHeads(config, rank.ranks)} * config.head_dim),
        kv_heads(int64_t{LocalKvHeads(config, rank.ranks)} * config.head_dim),
        width(LocalExpertWidth(config, rank.ranks)),
        vocab(LocalVocab(config, rank.rank, rank.ranks)),
        heads_first(heads * rank.rank),
        kv_first(int64_t{FirstKvHead(config, rank.rank, rank.ranks)} * config.head_dim),
        width_first(width * rank.rank) {}

  int64_t heads, kv_heads;  // rows: heads * d
  int64_t width;            // of each expert
  VocabSlice vocab;
  int64_t heads_first, kv_first, width_first;
};

LayerWeights AllocateLayer(const ModelConfig& config, const Share& share, LayerKind kind,
                           ExpertFormat experts, Allocator& take) {
  const int64_t hidden = config.hidden;
  LayerWeights layer;
  layer.input_norm = take.Take(DType::kF32, {hidden});
  layer.post_attention_norm = take.Take(DType::kF32, {hidden});
  if (kind == LayerKind::kLightning) {
    layer.qkv = take.Take(DType::kBF16, {3 * share.heads, hidden});
    layer.output_gate = take.Take(DType::kBF16, {share.heads, hidden});
    layer.lightning_norm = take.Take(DType::kF32, {share.heads});
    layer.out = take.Take(DType::kBF16, {hidden, share.heads});
  } else {
    layer.q = take.Take(DType::kBF16, {share.heads, hidden});
    layer.k = take.Take(DType::kBF16, {share.kv_heads, hidden});
    layer.v = take.Take(DType::kBF16, {share.kv_heads, hidden});
    layer.o = take.Take(DType::kBF16, {hidden, share.heads});
  }
  layer.gate = take.Take(DType::kF32, {config.experts, hidden});
  const DType dtype = experts == ExpertFormat::kInt8 ? DType::kI8 : DType::kBF16;
  layer.w13 = take.Take(dtype, {config.experts, 2 * share.width, hidden});
  layer.w2 = take.Take(dtype, {config.experts, hidden, share.width});
  if (experts == ExpertFormat::kInt8) {
    layer.w13_scale = take.Take(DType::kF32, {config.experts, 2 * share.width});
    layer.w2_scale = take.Take(DType::kF32, {config.experts, hidden});
  }
  return layer;
}

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
  const Share share_;
  const ModelWeights& weights_;
  const LayerWeights* layer_;
  const bool quantize_;
};

}  // namespace

Result<ModelWeights> AllocateWeights(const ModelConfig& config, RankShare rank,
                                     ExpertFormat experts) {
  const Share share(config, rank);
  ModelWeights weights;
  Allocator take(weights);
  weights.expert_format = experts;
  weights.vocab_first = share.vocab.first;
  weights.embedding = take.Take(DType::kBF16, {share.vocab.count, config.hidden});
  weights.head = config.tie_word_embeddings
                     ? weights.embedding
                     : take.Take(DType::kBF16, {share.vocab.count, config.hidden});
  weights.final_norm = take.Take(DType::kF32, {config.hidden});
  for (LayerKind kind : config.layer_kinds) {
    weights.layers.push_back(AllocateLayer(config, share, kind, experts, take));
  }
  RETURN_ERROR_IF(take.status());
  return weights;
}

std::vector<WeightBlock> Place(const NeededTensor& tensor, const ModelConfig& config,
                               RankShare rank, const ModelWeights& weights) {
  return Placer(tensor, config, rank, weights).Blocks();
}

}  // namespace levin
