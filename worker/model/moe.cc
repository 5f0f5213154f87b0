#include "worker/model/moe.h"

#include "worker/model/weight_matrix.h"

namespace levin {
namespace {

// Expert e of a stacked tensor [E, n, ...], without its first dimension.
TensorView Part(const TensorView& stacked, int64_t e) {
  if (!stacked) return {};
  TensorView part = stacked.Rows(e, 1);
  if (stacked.shape.rank() == 2) part.shape = {stacked.shape[1]};
  if (stacked.shape.rank() == 3) part.shape = {stacked.shape[1], stacked.shape[2]};
  return part;
}

TensorView RowsOrNone(const TensorView& tensor, int64_t first, int64_t count) {
  return tensor ? tensor.Rows(first, count) : TensorView{};
}

}  // namespace

Moe::Moe(const LayerWeights& weights, bool round_router_logits, Backend& backend)
    : gate_(weights.gate), round_router_logits_(round_router_logits) {
  const int64_t width = weights.w13.shape[1] / 2;
  for (int64_t e = 0; e < weights.w13.shape[0]; ++e) {
    const TensorView w13 = Part(weights.w13, e);
    const TensorView scale = Part(weights.w13_scale, e);
    w1_.push_back(MakeMatrix(w13.Rows(0, width), RowsOrNone(scale, 0, width), backend));
    w3_.push_back(MakeMatrix(w13.Rows(width, width), RowsOrNone(scale, width, width), backend));
    w2_.push_back(MakeMatrix(Part(weights.w2, e), Part(weights.w2_scale, e), backend));
  }
}

Status Moe::Run(const StepContext& step) const {
  const Workspace& w = step.workspace;
  const TensorView y = step.Used(w.y);
  const TensorView experts = step.Used(w.experts);
  const TensorView expert_weights = step.Used(w.expert_weights);
  const TensorView hidden = w.expert_hidden.Rows(0, experts.elements());
  const TensorView update = step.Used(w.update);

  step.kernels.RouteExperts({step.Used(w.normed), gate_, round_router_logits_,
                             step.Used(w.router_logits), experts, expert_weights});
  step.kernels.ExpertMatMul(
      {y, w1_, w3_, w2_, experts, expert_weights, hidden, w.expert_order, update});
  return step.SumOverRanks(update);
}

}  // namespace levin
