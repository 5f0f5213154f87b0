// One kernel on one shape: what it is called, what it needs, how to run it once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "worker/backend/backend.h"
#include "worker/bench/roof.h"

namespace levin {

struct KernelCase {
  std::string kernel;       // "MatMul"
  std::string shape;        // "6144 to 1152"
  std::string weights;      // "int8"; the cache's or the state's type where there are no weights
  std::string activations;  // "float32"
  int64_t tokens = 0;       // of the call; of the context where that is what grows
  RoofKind memory = RoofKind::kRead;  // how it uses memory
  double bytes = 0;                   // of memory that cannot be in a cache; of one run
  double operations = 0;              // a multiply-add is two; 0: far from being the limit
  std::function<void()> run;
};

// Called while the case's tensors live.
using CaseSink = std::function<void(const KernelCase&)>;

void MatMulCases(Backend& backend, const CaseSink& sink);
void ExpertCases(Backend& backend, const CaseSink& sink);
void LightningCases(Backend& backend, const CaseSink& sink);
void SoftmaxAttentionCases(Backend& backend, const CaseSink& sink);
void NormCases(Backend& backend, const CaseSink& sink);

inline const char* ActivationName(DType dtype) {
  return dtype == DType::kF32 ? "float32" : "bfloat16";
}
inline const char* WeightName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "fp32";
    case DType::kI8:
      return "int8";
    default:
      return "bf16";
  }
}

}  // namespace levin
