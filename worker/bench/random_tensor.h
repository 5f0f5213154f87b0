// Tensors full of numbers of order 1, quickly.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/backend/backend.h"
#include "worker/tensor/tensor.h"

namespace levin {

// A tensor that owns its memory.
struct OwnedTensor {
  Buffer memory;
  TensorView view;
};

OwnedTensor EmptyTensor(DType dtype, const Shape& shape);
OwnedTensor RandomTensor(DType dtype, const Shape& shape);  // f32, bf16 or i8

// As many equal matrices' worth of random weights as `bytes` take, at least `least`, in the order
// of the backend's kernels. `weights` is bf16 or i8.
struct RandomMatrices {
  OwnedTensor data, scale;
  std::vector<WeightMatrix> matrices;
};
RandomMatrices MakeMatrices(Backend& backend, DType weights, int64_t rows, int64_t cols,
                            int64_t bytes, int64_t least);

}  // namespace levin
