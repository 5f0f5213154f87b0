// 8 lanes: AVX2 and FMA.
#include "worker/backend/cpu/simd.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "worker/backend/kernels.h"
#include "worker/tensor/bf16.h"

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace levin {
namespace {

struct V {
  static constexpr int kLanes = 8;
  static constexpr int kRegisters = 16;
  __m256 v;

  static V Set(float x) { return {_mm256_set1_ps(x)}; }
  static V Load(const float* p) { return {_mm256_loadu_ps(p)}; }
  static __m256i First(int lanes) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(lanes), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static V Load(const float* p, int lanes) {
    if (lanes == kLanes) return Load(p);
    return {_mm256_maskload_ps(p, First(lanes))};
  }
  void Store(float* p) const { _mm256_storeu_ps(p, v); }
  void Store(float* p, int lanes) const {
    if (lanes == kLanes) return Store(p);
    _mm256_maskstore_ps(p, First(lanes), v);
  }
  static V Add(V a, V b) { return {_mm256_add_ps(a.v, b.v)}; }
  static V Subtract(V a, V b) { return {_mm256_sub_ps(a.v, b.v)}; }
  static V Multiply(V a, V b) { return {_mm256_mul_ps(a.v, b.v)}; }
  static V Divide(V a, V b) { return {_mm256_div_ps(a.v, b.v)}; }
  static V MultiplyAdd(V a, V b, V c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
  // Of two where one is NaN: the second.
  static V Max(V a, V b) { return {_mm256_max_ps(a.v, b.v)}; }
  static V Min(V a, V b) { return {_mm256_min_ps(a.v, b.v)}; }
  static V Round(V a) {
    return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }
  // n whole, and the result a normal number.
  static V ScaleByPowerOfTwo(V a, V n) {
    const __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(n.v), 23);
    return {_mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a.v), exponent))};
  }
  float Sum() const {
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    return _mm_cvtss_f32(_mm_add_ss(sum, _mm_shuffle_ps(sum, sum, 1)));
  }

  static V LoadBf16(const uint16_t* p) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16))};
  }
  static V LoadInt8(const int8_t* p) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))};
  }
  // 8 pairs of bf16; their lower and upper halves as fp32.
  using Bits = __m256i;
  static Bits LoadBits(const uint16_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static Bits SetBits(uint32_t pair) { return _mm256_set1_epi32(static_cast<int>(pair)); }
  static V Low(Bits bits) { return {_mm256_castsi256_ps(_mm256_slli_epi32(bits, 16))}; }
  static V High(Bits bits) {
    return {_mm256_castsi256_ps(_mm256_and_si256(bits, _mm256_set1_epi32(-65536)))};
  }
};

#include "worker/backend/cpu/simd_loops.inc"
#include "worker/backend/cpu/simd_rows.inc"

// FloatToBf16, eight at a time.
void RoundEights(const float* x, uint16_t* out, int64_t n) {
  const __m256i one = _mm256_set1_epi32(1);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 value = _mm256_loadu_ps(x + i);
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i upper = _mm256_srli_epi32(bits, 16);
    const __m256i up = _mm256_add_epi32(_mm256_set1_epi32(0x7fff), _mm256_and_si256(upper, one));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, up), 16);
    const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    const __m256i result = _mm256_blendv_epi8(rounded, quiet, nan);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(out + i),
        _mm_packus_epi32(_mm256_castsi256_si128(result), _mm256_extracti128_si256(result, 1)));
  }
  for (; i < n; ++i) out[i] = FloatToBf16(x[i]);
}

SimdOps OpsOfAvx2() {
  SimdOps ops = kOps;
  ops.round = RoundEights;
  ops.rows_f32_bf16 = RunRows<float, uint16_t>;
  ops.rows_f32_int8 = RunRows<float, int8_t>;
  ops.rows_bf16_bf16 = RunRows<uint16_t, uint16_t>;
  ops.rows_bf16_int8 = RunRows<uint16_t, int8_t>;
  ops.rows_least = 3;
  return ops;
}

}  // namespace

namespace avx2 {
const SimdOps* Ops() {
  static const SimdOps ops = OpsOfAvx2();
  return &ops;
}
}  // namespace avx2

}  // namespace levin
#pragma GCC pop_options

#else

namespace levin::avx2 {
const SimdOps* Ops() { return nullptr; }
}  // namespace levin::avx2

#endif
