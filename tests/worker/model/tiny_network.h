// The smallest golden network with both attentions, and what tests say about it without known
// values.
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <vector>

#include "common/base/check.h"
#include "tests/support/golden.h"
#include "tests/worker/model/model_group.h"

namespace levin::testing {

inline std::filesystem::path Tiny() { return GoldenDirs("network").front() / "tiny"; }

inline std::vector<TokenId> Prompt(int seed, int64_t tokens) {
  std::vector<TokenId> prompt;
  for (int64_t t = 0; t < tokens; ++t) {
    prompt.push_back(static_cast<TokenId>((seed * 131 + t * t * 7 + t * 29) % 320));
  }
  return prompt;
}

inline float Difference(std::span<const float> a, std::span<const float> b) {
  CHECK_EQ(a.size(), b.size());
  float worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const float difference = std::abs(a[i] - b[i]);
    if (!(difference <= worst)) worst = difference;  // a NaN counts as the worst
  }
  return worst;
}

inline void FillWithNan(const TensorView& tensor) {
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (tensor.dtype == DType::kF32) {
      tensor.as<float>()[i] = std::numeric_limits<float>::quiet_NaN();
    } else {
      tensor.as<uint16_t>()[i] = 0x7fc0;
    }
  }
}

}  // namespace levin::testing
