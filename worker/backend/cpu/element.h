// Elements of f32 and bf16 tensors as floats.
#pragma once

#include <cstdint>

#include "common/base/check.h"
#include "worker/tensor/bf16.h"
#include "worker/tensor/tensor.h"

namespace levin {

inline float Load(const float* p) { return *p; }
inline float Load(const uint16_t* p) { return Bf16ToFloat(*p); }
inline void Store(float* p, float value) { *p = value; }
inline void Store(uint16_t* p, float value) { *p = FloatToBf16(value); }

// Calls f with a typed pointer to the tensor's first element: float* or uint16_t* (bf16).
template <typename F>
decltype(auto) WithFloats(const TensorView& tensor, F&& f) {
  if (tensor.dtype == DType::kF32) return f(tensor.as<float>());
  CHECK(tensor.dtype == DType::kBF16, Name(tensor.dtype));
  return f(tensor.as<uint16_t>());
}

inline float* F32(const TensorView& tensor) {
  CHECK(tensor.dtype == DType::kF32, Name(tensor.dtype));
  return tensor.as<float>();
}
inline int32_t* I32(const TensorView& tensor) {
  CHECK(tensor.dtype == DType::kI32, Name(tensor.dtype));
  return tensor.as<int32_t>();
}

}  // namespace levin
