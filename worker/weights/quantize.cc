#include "worker/weights/quantize.h"

#include <algorithm>

#include "common/base/check.h"
#include "worker/tensor/bf16.h"

namespace levin {

float RowScaleInt8(std::span<const uint16_t> row_bf16) {
  // Magnitudes of one sign order like their bits, NaN above infinity: an integer maximum is exact.
  uint16_t largest = 0;
  for (uint16_t bits : row_bf16) largest = std::max<uint16_t>(largest, bits & 0x7fff);
  return largest == 0 ? 1.0f : Bf16ToFloat(largest) / 127.0f;
}

void QuantizeInt8(std::span<const uint16_t> values_bf16, float scale, std::span<int8_t> out) {
  CHECK_EQ(values_bf16.size(), out.size());
  // Adding and taking away 1.5 * 2^23 leaves no room for a fraction: the addition rounds to the
  // nearest integer, ties to even, for every |value| below 2^22.
  constexpr float kRounder = 12582912.0f;
  for (size_t i = 0; i < out.size(); ++i) {
    const float value = std::clamp(Bf16ToFloat(values_bf16[i]) / scale, -127.0f, 127.0f);
    out[i] = static_cast<int8_t>((value + kRounder) - kRounder);
  }
}

}  // namespace levin
