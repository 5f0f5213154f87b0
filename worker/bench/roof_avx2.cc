#include "worker/bench/roof_loops.h"

#if defined(__x86_64__)

#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace levin {
namespace {

struct V {
  static constexpr int kLanes = 8;
  __m256 v;
  static V Set(float x) { return {_mm256_set1_ps(x)}; }
  static V Load(const float* p) { return {_mm256_loadu_ps(p)}; }
  void Store(float* p) const { _mm256_storeu_ps(p, v); }
  static V Add(V a, V b) { return {_mm256_add_ps(a.v, b.v)}; }
  static V Multiply(V a, V b) { return {_mm256_mul_ps(a.v, b.v)}; }
  static V MultiplyAdd(V a, V b, V c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
  float First() const { return _mm256_cvtss_f32(v); }
};
constexpr int kSums = 12;

#include "worker/bench/roof_loops.inc"

}  // namespace

namespace avx2 {
RoofLoops Loops() {
  return {Read, Rewrite, {"vfmadd ymm", 2.0 * kSums * V::kLanes, MultiplyAddLoop}};
}
}  // namespace avx2

}  // namespace levin
#pragma GCC pop_options

#else

namespace levin::avx2 {
RoofLoops Loops() { return plain::Loops(); }
}  // namespace levin::avx2

#endif
