#include "worker/backend/rope.h"

#include <cmath>

namespace levin {

std::vector<float> RopeInverseFrequencies(double theta, int64_t rotary_dim) {
  std::vector<float> inv_freq;
  for (int64_t j = 0; 2 * j < rotary_dim; ++j) {
    const float exponent = static_cast<float>(2 * j) / static_cast<float>(rotary_dim);
    const float power = static_cast<float>(std::pow(theta, static_cast<double>(exponent)));
    inv_freq.push_back(1.0f / power);
  }
  return inv_freq;
}

}  // namespace levin
