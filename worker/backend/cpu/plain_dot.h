// The specification of a product: one output element is one sum over K, in double, rounded once.
#pragma once

#include <cstdint>

#include "worker/backend/cpu/element.h"
#include "worker/backend/kernels.h"

namespace levin {

// Row `row` of a row-major matrix with x [cols].
template <typename X>
float PlainDot(const X* x, const WeightMatrix& w, int64_t row) {
  double sum = 0;
  if (w.data.dtype == DType::kI8) {
    const int8_t* q = w.data.as<int8_t>() + row * w.cols;
    for (int64_t k = 0; k < w.cols; ++k) sum += static_cast<double>(Load(x + k)) * q[k];
    return static_cast<float>(sum * F32(w.scale)[row]);
  }
  const uint16_t* bits = w.data.as<uint16_t>() + row * w.cols;
  for (int64_t k = 0; k < w.cols; ++k) {
    sum += static_cast<double>(Load(x + k)) * Bf16ToFloat(bits[k]);
  }
  return static_cast<float>(sum);
}

}  // namespace levin
