// 16 lanes: AVX-512 F, BW, DQ, VL.
#include "worker/backend/cpu/simd.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "worker/backend/kernels.h"
#include "worker/tensor/bf16.h"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")

namespace levin {
namespace {

struct V {
  static constexpr int kLanes = 16;
  static constexpr int kRegisters = 32;
  __m512 v;

  static V Set(float x) { return {_mm512_set1_ps(x)}; }
  static V Load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static __mmask16 First(int lanes) { return static_cast<__mmask16>((1u << lanes) - 1); }
  static V Load(const float* p, int lanes) {
    if (lanes == kLanes) return Load(p);
    return {_mm512_maskz_loadu_ps(First(lanes), p)};
  }
  void Store(float* p) const { _mm512_storeu_ps(p, v); }
  void Store(float* p, int lanes) const {
    if (lanes == kLanes) return Store(p);
    _mm512_mask_storeu_ps(p, First(lanes), v);
  }
  static V Add(V a, V b) { return {_mm512_add_ps(a.v, b.v)}; }
  static V Subtract(V a, V b) { return {_mm512_sub_ps(a.v, b.v)}; }
  static V Multiply(V a, V b) { return {_mm512_mul_ps(a.v, b.v)}; }
  static V Divide(V a, V b) { return {_mm512_div_ps(a.v, b.v)}; }
  static V MultiplyAdd(V a, V b, V c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  // Of two where one is NaN: the second.
  static V Max(V a, V b) { return {_mm512_max_ps(a.v, b.v)}; }
  static V Min(V a, V b) { return {_mm512_min_ps(a.v, b.v)}; }
  static V Round(V a) {
    return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }
  static V ScaleByPowerOfTwo(V a, V n) { return {_mm512_scalef_ps(a.v, n.v)}; }
  // Halves first: the order of the eight-lane table.
  float Sum() const {
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    return _mm_cvtss_f32(_mm_add_ss(sum, _mm_shuffle_ps(sum, sum, 1)));
  }

  static V LoadBf16(const uint16_t* p) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
  }
  static V LoadInt8(const int8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
  }
  // 16 pairs of bf16; their lower and upper halves as fp32.
  using Bits = __m512i;
  static Bits LoadBits(const uint16_t* p) { return _mm512_loadu_si512(p); }
  static Bits SetBits(uint32_t pair) { return _mm512_set1_epi32(static_cast<int>(pair)); }
  static V Low(Bits bits) { return {_mm512_castsi512_ps(_mm512_slli_epi32(bits, 16))}; }
  static V High(Bits bits) {
    return {_mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(-65536)))};
  }
};

#include "worker/backend/cpu/simd_loops.inc"

}  // namespace

namespace avx512 {
const SimdOps* Ops() { return &kOps; }
}  // namespace avx512

}  // namespace levin
#pragma GCC pop_options

#else

namespace levin::avx512 {
const SimdOps* Ops() { return nullptr; }
}  // namespace levin::avx512

#endif
