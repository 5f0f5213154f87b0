// AVX-512, and the dots of bf16 and of bytes where a processor has them.
#include "worker/bench/roof_loops.h"

#if defined(__x86_64__)

#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vnni,avx2,fma")

namespace levin {
namespace {

struct V {
  static constexpr int kLanes = 16;
  __m512 v;
  static V Set(float x) { return {_mm512_set1_ps(x)}; }
  static V Load(const float* p) { return {_mm512_loadu_ps(p)}; }
  void Store(float* p) const { _mm512_storeu_ps(p, v); }
  static V Add(V a, V b) { return {_mm512_add_ps(a.v, b.v)}; }
  static V Multiply(V a, V b) { return {_mm512_mul_ps(a.v, b.v)}; }
  static V MultiplyAdd(V a, V b, V c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  float First() const { return _mm512_cvtss_f32(v); }
};
constexpr int kSums = 24;

#include "worker/bench/roof_loops.inc"

void Bf16DotLoop(int64_t rounds) {
  __m512 sums[kSums];
  for (__m512& sum : sums) sum = _mm512_set1_ps(1);
  const __m512i pairs = _mm512_set1_epi32(0x3f003f00);
  for (int64_t i = 0; i < rounds; ++i) {
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, (__m512bh)pairs, (__m512bh)pairs);
  }
  __m512 total = sums[0];
  for (int j = 1; j < kSums; ++j) total = _mm512_add_ps(total, sums[j]);
  volatile float kept = _mm512_cvtss_f32(total);
  (void)kept;
}

void Int8DotLoop(int64_t rounds) {
  __m512i sums[kSums];
  for (__m512i& sum : sums) sum = _mm512_set1_epi32(1);
  const __m512i fours = _mm512_set1_epi8(1);
  for (int64_t i = 0; i < rounds; ++i) {
    for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, fours, fours);
  }
  __m512i total = sums[0];
  for (int j = 1; j < kSums; ++j) total = _mm512_add_epi32(total, sums[j]);
  volatile int kept = _mm512_cvtsi512_si32(total);
  (void)kept;
}

}  // namespace

namespace avx512 {
RoofLoops Loops() {
  return {Read, Rewrite, {"vfmadd zmm", 2.0 * kSums * V::kLanes, MultiplyAddLoop}};
}
std::vector<ArithmeticLoop> ExtraLoops() {
  std::vector<ArithmeticLoop> loops;
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512bf16")) {
    loops.push_back({"vdpbf16ps zmm", 4.0 * kSums * V::kLanes, Bf16DotLoop});
  }
  if (__builtin_cpu_supports("avx512vnni")) {
    loops.push_back({"vpdpbusd zmm", 8.0 * kSums * V::kLanes, Int8DotLoop});
  }
  return loops;
}
}  // namespace avx512

}  // namespace levin
#pragma GCC pop_options

#else

namespace levin::avx512 {
RoofLoops Loops() { return plain::Loops(); }
std::vector<ArithmeticLoop> ExtraLoops() { return {}; }
}  // namespace levin::avx512

#endif
