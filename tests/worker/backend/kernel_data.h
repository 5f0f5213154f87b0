// Random tensors with an owner, and comparison.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "worker/backend/cpu/cpu_backend.h"
#include "worker/backend/kernels.h"
#include "worker/tensor/bf16.h"
#include "worker/tensor/tensor.h"

namespace levin::testing {

// A tensor that owns its memory.
struct Owned {
  Buffer memory;
  TensorView view;

  Owned() = default;
  Owned(DType dtype, const Shape& shape) : memory(dtype, shape), view(memory.View(dtype, shape)) {}
  float at(int64_t i) const {
    if (view.dtype == DType::kF32) return view.as<float>()[i];
    return Bf16ToFloat(view.as<uint16_t>()[i]);
  }
};

class Random final {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}

  Owned Floats(DType dtype, const Shape& shape, float scale = 1) {
    Owned out(dtype, shape);
    std::normal_distribution<float> normal(0, scale);
    for (int64_t i = 0; i < shape.elements(); ++i) {
      const float value = normal(engine_);
      if (dtype == DType::kF32) out.view.as<float>()[i] = value;
      if (dtype == DType::kBF16) out.view.as<uint16_t>()[i] = FloatToBf16(value);
    }
    return out;
  }
  Owned Bytes(const Shape& shape) {
    Owned out(DType::kI8, shape);
    for (int64_t i = 0; i < shape.elements(); ++i) {
      out.view.as<int8_t>()[i] = static_cast<int8_t>(Below(255) - 127);
    }
    return out;
  }
  int Below(int n) { return static_cast<int>(engine_() % static_cast<uint32_t>(n)); }

 private:
  std::mt19937 engine_;
};

inline Owned Copy(const Owned& from) {
  Owned to(from.view.dtype, from.view.shape);
  std::copy(from.view.span().begin(), from.view.span().end(), to.view.data);
  return to;
}

// Largest |a - b| over the largest |b|.
inline double RelativeDifference(const Owned& a, const Owned& b) {
  double worst = 0, largest = 1e-30;
  for (int64_t i = 0; i < b.view.elements(); ++i) {
    const double difference = std::abs(double{a.at(i)} - b.at(i));
    if (!(difference <= worst)) worst = difference;
    largest = std::max(largest, std::abs(double{b.at(i)}));
  }
  return worst / largest;
}

inline bool SameBits(const TensorView& a, const TensorView& b) {
  return a.bytes() == b.bytes() && std::equal(a.data, a.data + a.bytes(), b.data);
}

// What this machine can run, beside the plain path.
inline std::vector<CpuPath> FastPaths() {
  std::vector<CpuPath> paths;
  if (BestCpuPath() >= CpuPath::kAvx2) paths.push_back(CpuPath::kAvx2);
  if (BestCpuPath() >= CpuPath::kAvx512) paths.push_back(CpuPath::kAvx512);
  return paths;
}

// Rows of a step with everything that a RowTable points at.
struct TestRows {
  std::vector<int32_t> first{0}, slot, block_first{0}, blocks, token_row;
  std::vector<int64_t> position, token_position;
  std::vector<uint8_t> fresh, stepwise;

  void Add(int64_t at, int64_t tokens, int32_t in_slot, bool step = false,
           std::vector<int32_t> of_blocks = {}) {
    for (int64_t t = 0; t < tokens; ++t) {
      token_row.push_back(static_cast<int32_t>(slot.size()));
      token_position.push_back(at + t);
    }
    first.push_back(static_cast<int32_t>(token_row.size()));
    position.push_back(at);
    slot.push_back(in_slot);
    fresh.push_back(at == 0);
    stepwise.push_back(step);
    blocks.insert(blocks.end(), of_blocks.begin(), of_blocks.end());
    block_first.push_back(static_cast<int32_t>(blocks.size()));
  }
  RowTable table() const {
    return {first, position, slot, fresh, stepwise, block_first, blocks, token_row, token_position};
  }
  int64_t tokens() const { return static_cast<int64_t>(token_row.size()); }
};

}  // namespace levin::testing
