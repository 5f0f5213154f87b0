// A stored tensor as a packed matrix.
#pragma once

#include "common/base/check.h"
#include "worker/backend/backend.h"

namespace levin {

inline WeightMatrix MakeMatrix(const TensorView& data, const TensorView& scale, Backend& backend) {
  CHECK_EQ(data.shape.rank(), 2);
  WeightMatrix matrix{data, scale, data.shape[0], data.shape[1], false};
  backend.Pack(matrix);
  return matrix;
}
inline WeightMatrix MakeMatrix(const TensorView& data, Backend& backend) {
  return MakeMatrix(data, TensorView{}, backend);
}

}  // namespace levin
