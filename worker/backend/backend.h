// The door to a device: its memory and its kernels. One per rank, used by the engine thread alone.
#pragma once

#include <cstdint>

#include "worker/backend/kernels.h"
#include "worker/tensor/tensor.h"

namespace levin {

class Backend {
 public:
  virtual ~Backend() = default;

  // Zeroed. At start only: nothing is allocated while the network runs.
  virtual Buffer Allocate(int64_t bytes) = 0;

  // Brings a matrix into the order that the kernels read fastest, in place. Once per matrix; nobody
  // else may read its bytes afterwards.
  virtual void Pack(WeightMatrix& matrix) = 0;

  virtual Kernels& kernels() = 0;
};

}  // namespace levin
