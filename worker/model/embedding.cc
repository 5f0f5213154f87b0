#include "worker/model/embedding.h"

#include <algorithm>
#include <cstring>

#include "worker/model/weight_matrix.h"

namespace levin {

Status Embedding::Run(const StepContext& step, std::span<const TokenId> tokens) const {
  const TensorView update = step.Used(step.workspace.update);
  step.kernels.Embed({tokens, table_, first_, update});
  return step.SumOverRanks(update);
}

Head::Head(const ModelConfig& config, int ranks, const ModelWeights& weights, DType act,
           int64_t rows_max, Backend& backend)
    : vocab_(config.vocab), rows_max_(rows_max) {
  for (int r = 0; r < ranks; ++r) slices_.push_back(LocalVocab(config, r, ranks));
  TensorView data = weights.head;
  if (data.data == weights.embedding.data) {
    copy_ = backend.Allocate(data.bytes());
    std::memcpy(copy_.data(), data.data, static_cast<size_t>(data.bytes()));
    data.data = copy_.data();
  }
  weight_ = MakeMatrix(data, backend);
  inputs_memory_ = backend.Allocate(rows_max * config.hidden * ByteSize(act));
  inputs_ = inputs_memory_.View(act, {rows_max, config.hidden});
  if (ranks > 1) {
    const int64_t bytes = rows_max * slices_[0].count * ByteSize(DType::kF32);
    part_memory_ = backend.Allocate(bytes);
    all_memory_ = backend.Allocate(ranks * bytes);
  }
}

Status Head::Run(const StepContext& step, std::span<const int32_t> rows, std::span<float> logits) {
  CHECK_EQ(logits.size(), rows.size() * vocab_);
  for (float* to = logits.data(); !rows.empty();) {
    const size_t count = std::min(rows.size(), static_cast<size_t>(rows_max_));
    RETURN_IF_ERROR(RunPiece(step, rows.first(count), to));
    rows = rows.subspan(count);
    to += count * vocab_;
  }
  return Status::Ok();
}

Status Head::RunPiece(const StepContext& step, std::span<const int32_t> rows, float* logits) {
  const auto count = static_cast<int64_t>(rows.size());
  const TensorView inputs = inputs_.Rows(0, count);
  step.kernels.GatherRows({step.Used(step.workspace.y), rows, inputs});
  if (slices_.size() == 1) {
    const TensorView out{DType::kF32, {count, vocab_}, reinterpret_cast<std::byte*>(logits)};
    step.kernels.MatMul({inputs, &weight_, out, Epilogue::kNone});
    return Status::Ok();
  }
  // Ranks give equal shares: the largest slice. What a smaller slice leaves unused is not read.
  const int64_t share = count * slices_[0].count;
  const TensorView out = part_memory_.View(DType::kF32, {count, weight_.rows});
  if (weight_.rows > 0) step.kernels.MatMul({inputs, &weight_, out, Epilogue::kNone});
  const auto bytes = static_cast<size_t>(share * ByteSize(DType::kF32));
  RETURN_IF_ERROR(step.collective.AllGather({part_memory_.data(), bytes},
                                            {all_memory_.data(), bytes * slices_.size()}));
  const auto* all = reinterpret_cast<const float*>(all_memory_.data());
  for (size_t r = 0; r < slices_.size(); ++r) {
    const auto [first, width] = slices_[r];
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(all + static_cast<int64_t>(r) * share + i * width, width,
                  logits + i * vocab_ + first);
    }
  }
  return Status::Ok();
}

}  // namespace levin
