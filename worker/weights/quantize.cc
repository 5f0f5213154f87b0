#include "worker/weights/quantize.h"

#include <algorithm>

#include "common/base/check.h"
#include "worker/tensor/bf16.h"

namespace levin {
namespace {

// Loading is bound by these two loops when the files are in memory: each is compiled twice, plain
// and for AVX2, from one text, so that the results are the same bits.
#define LEVIN_INLINE inline __attribute__((always_inline))
#if defined(__x86_64__)
#define LEVIN_AVX2 __attribute__((target("avx2")))
bool HasAvx2() { return __builtin_cpu_supports("avx2"); }
#else
#define LEVIN_AVX2
bool HasAvx2() { return false; }
#endif

// Magnitudes of one sign order like their bits, NaN above infinity: an integer maximum is exact.
LEVIN_INLINE uint16_t Largest(const uint16_t* row, size_t count) {
  uint16_t largest = 0;
  for (size_t i = 0; i < count; ++i) {
    largest = std::max<uint16_t>(largest, static_cast<uint16_t>(row[i] & 0x7fff));
  }
  return largest;
}
LEVIN_AVX2 uint16_t LargestAvx2(const uint16_t* row, size_t count) { return Largest(row, count); }

LEVIN_INLINE void Quantize(const uint16_t* values, size_t count, float scale, int8_t* out) {
  // Adding and taking away 1.5 * 2^23 leaves no room for a fraction: the addition rounds to the
  // nearest integer, ties to even, for every |value| below 2^22.
  constexpr float kRounder = 12582912.0f;
  for (size_t i = 0; i < count; ++i) {
    const float value = std::clamp(Bf16ToFloat(values[i]) / scale, -127.0f, 127.0f);
    out[i] = static_cast<int8_t>(static_cast<int32_t>((value + kRounder) - kRounder));
  }
}
LEVIN_AVX2 void QuantizeAvx2(const uint16_t* values, size_t count, float scale, int8_t* out) {
  Quantize(values, count, scale, out);
}

}  // namespace

float RowScaleInt8(std::span<const uint16_t> row_bf16) {
  const uint16_t largest = HasAvx2() ? LargestAvx2(row_bf16.data(), row_bf16.size())
                                     : Largest(row_bf16.data(), row_bf16.size());
  return largest == 0 ? 1.0f : Bf16ToFloat(largest) / 127.0f;
}

void QuantizeInt8(std::span<const uint16_t> values_bf16, float scale, std::span<int8_t> out) {
  CHECK_EQ(values_bf16.size(), out.size());
  if (HasAvx2()) {
    QuantizeAvx2(values_bf16.data(), out.size(), scale, out.data());
  } else {
    Quantize(values_bf16.data(), out.size(), scale, out.data());
  }
}

}  // namespace levin
