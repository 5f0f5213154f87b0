// What every sub-block needs to know of the step at hand.
#pragma once

#include <cstdint>

#include "worker/backend/kernels.h"
#include "worker/comm/collective.h"
#include "worker/model/workspace.h"
#include "worker/tensor/tensor.h"

namespace levin {

struct StepContext {
  Kernels& kernels;
  Collective& collective;
  const Workspace& workspace;
  TensorView states;  // [slots, lightning layers, h, d * d] f32
  TensorView kv;      // [blocks, 2 * softmax layers, g, 64 * d]
  RowTable rows;

  int64_t tokens() const { return rows.tokens(); }
  // The step's part of a workspace tensor whose rows are tokens.
  TensorView Used(const TensorView& tensor) const { return tensor.Rows(0, tokens()); }

  // Sums the ranks' parts of an f32 tensor in place.
  Status SumOverRanks(const TensorView& part) const {
    if (collective.ranks() == 1) return Status::Ok();
    return collective.AllReduceSum({part.as<float>(), static_cast<size_t>(part.elements())});
  }
};

// The same elements as a matrix of `rows` rows.
inline TensorView AsMatrix(TensorView tensor, int64_t rows) {
  tensor.shape = {rows, rows == 0 ? 0 : tensor.elements() / rows};
  return tensor;
}

}  // namespace levin
