#include "worker/model/softmax_attention.h"

#include "worker/model/weight_matrix.h"

namespace levin {

SoftmaxAttention::SoftmaxAttention(const ModelConfig& config, int index, int ranks,
                                   const LayerWeights& weights, std::span<const float> inv_freq,
                                   Backend& backend)
    : index_(index),
      kv_heads_(LocalKvHeads(config, ranks)),
      inv_freq_(inv_freq),
      q_(MakeMatrix(weights.q, backend)),
      k_(MakeMatrix(weights.k, backend)),
      v_(MakeMatrix(weights.v, backend)),
      o_(MakeMatrix(weights.o, backend)) {}

Status SoftmaxAttention::Run(const StepContext& step) const {
  const Workspace& w = step.workspace;
  const int64_t tokens = step.tokens();
  const TensorView y = step.Used(w.y);
  const TensorView query = step.Used(w.heads);
  const TensorView keys = step.Used(w.keys);
  const TensorView values = step.Used(w.values);
  const TensorView mixed = step.Used(w.mixed);
  const TensorView update = step.Used(w.update);

  step.kernels.MatMul({y, &q_, AsMatrix(query, tokens), Epilogue::kNone});
  step.kernels.MatMul({y, &k_, AsMatrix(keys, tokens), Epilogue::kNone});
  step.kernels.MatMul({y, &v_, AsMatrix(values, tokens), Epilogue::kNone});
  step.kernels.Rope({query, inv_freq_, step.rows.token_position});
  step.kernels.Rope({keys, inv_freq_, step.rows.token_position});
  step.kernels.StoreKv({keys, values, step.rows, step.kv, index_});

  TensorView out = mixed;
  out.shape = query.shape;
  step.kernels.PagedAttention({query, step.rows, step.kv, index_, kv_heads_, w.pieces, out});
  step.kernels.MatMul({mixed, &o_, update, Epilogue::kNone});
  return step.SumOverRanks(update);
}

}  // namespace levin
