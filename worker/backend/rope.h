// The rotary angles of model.md 3, with the roundings of the official code.
#pragma once

#include <cstdint>
#include <vector>

namespace levin {

// inv_freq_j = 1 / theta^(2j / rotary_dim), j < rotary_dim / 2, with three fp32 roundings: the
// exponent, the power, the quotient. One rounding differs by an ulp in half of the pairs.
std::vector<float> RopeInverseFrequencies(double theta, int64_t rotary_dim);

// fp32 on purpose: beyond a million tokens the model was trained with this rounding.
inline float RopeAngle(int64_t position, float inv_freq) {
  return static_cast<float>(position) * inv_freq;
}

}  // namespace levin
