#include "worker/model/lightning_attention.h"

#include "worker/model/weight_matrix.h"

namespace levin {

LightningAttention::LightningAttention(const ModelConfig& config, int layer, int index, int rank,
                                       int ranks, const LayerWeights& weights, Backend& backend)
    : index_(index),
      width_(int64_t{config.heads} * config.head_dim),
      eps_(config.lightning_norm_eps),
      qkv_(MakeMatrix(weights.qkv, backend)),
      output_gate_(MakeMatrix(weights.output_gate, backend)),
      out_(MakeMatrix(weights.out, backend)),
      norm_(weights.lightning_norm) {
  const std::vector<double> all = LightningSlopes(config, layer);
  const int local = LocalHeads(config, ranks);
  slopes_.assign(all.begin() + rank * local, all.begin() + (rank + 1) * local);
}

Status LightningAttention::Run(const StepContext& step) const {
  const Workspace& w = step.workspace;
  const int64_t tokens = step.tokens();
  const TensorView y = step.Used(w.y);
  const TensorView qkv = step.Used(w.qkv);
  const TensorView heads = step.Used(w.heads);
  const TensorView flat = AsMatrix(heads, tokens);
  const TensorView gate = step.Used(w.gate);
  const TensorView squares = step.Used(w.sum_squares);
  const TensorView mixed = step.Used(w.mixed);
  const TensorView update = step.Used(w.update);

  step.kernels.MatMul({y, &qkv_, AsMatrix(qkv, tokens), Epilogue::kSilu});
  step.kernels.LightningAttention({qkv, step.rows, step.states, index_, slopes_, heads});
  // The norm spans the heads of all ranks; each gates its own.
  step.kernels.SumSquares({flat, squares});
  RETURN_IF_ERROR(step.SumOverRanks(squares));
  step.kernels.MatMul({y, &output_gate_, gate, Epilogue::kNone});
  step.kernels.GateNorm({flat, gate, squares, width_, norm_, eps_, mixed});
  step.kernels.MatMul({mixed, &out_, update, Epilogue::kNone});
  return step.SumOverRanks(update);
}

}  // namespace levin
