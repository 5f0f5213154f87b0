// sigmoid and SiLU as the specification has them.
#pragma once

#include <cmath>

namespace levin {

inline float Sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }
inline float Silu(float x) { return x * Sigmoid(x); }

}  // namespace levin
