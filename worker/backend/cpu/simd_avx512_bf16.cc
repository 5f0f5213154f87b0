// Products of bf16 rows by VDPBF16PS: pairs of products in one instruction. It rounds unlike fused
// multiply-adds and flushes denormals, so it serves bf16 activations only.
#include "worker/backend/cpu/simd.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")

namespace levin {
namespace {

constexpr int kRowsAtOnce = 12;

// The weights of 16 rows for an even k and the odd one behind it, as pairs of bf16.
inline __m512i Pairs(const uint16_t* block, int64_t k) {
  return _mm512_loadu_si512(block + k * kBlockRows);
}
// A small integer in fp32 has nothing in its lower half: bf16 is its upper half.
inline __m512i Pairs(const int8_t* block, int64_t k) {
  const __m128i* at = reinterpret_cast<const __m128i*>(block + k * kBlockRows);
  const __m512 even = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(at)));
  const __m512 odd = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(at + 1)));
  return _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(even), 16),
                         _mm512_castps_si512(odd));
}
// The last k of an odd number, paired with zeros.
inline __m512i LastPairs(const uint16_t* block, int64_t k) {
  const auto* at = reinterpret_cast<const __m256i*>(block + k * kBlockRows);
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256(at));
}
inline __m512i LastPairs(const int8_t* block, int64_t k) {
  const auto* at = reinterpret_cast<const __m128i*>(block + k * kBlockRows);
  const __m512 last = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(at)));
  return _mm512_srli_epi32(_mm512_castps_si512(last), 16);
}

inline __m512 Dot(__m512 sum, uint32_t x, __m512i weights) {
  return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_set1_epi32(static_cast<int>(x)), (__m512bh)weights);
}

template <int M, typename W>
void Tile(const uint16_t* const* x, const W* w0, const W* w1, int64_t k, float* out) {
  __m512 sum[M][2];
  for (int i = 0; i < M; ++i) sum[i][0] = sum[i][1] = _mm512_setzero_ps();
  int64_t at = 0;
  for (; at + 1 < k; at += 2) {
    __builtin_prefetch(reinterpret_cast<const char*>(w0 + at * kBlockRows) + 2048);
    __builtin_prefetch(reinterpret_cast<const char*>(w1 + at * kBlockRows) + 2048);
    const __m512i first = Pairs(w0, at);
    const __m512i second = Pairs(w1, at);
    for (int i = 0; i < M; ++i) {
      uint32_t pair;
      std::memcpy(&pair, x[i] + at, sizeof(pair));
      sum[i][0] = Dot(sum[i][0], pair, first);
      sum[i][1] = Dot(sum[i][1], pair, second);
    }
  }
  if (at < k) {
    const __m512i first = LastPairs(w0, at);
    const __m512i second = LastPairs(w1, at);
    for (int i = 0; i < M; ++i) {
      sum[i][0] = Dot(sum[i][0], x[i][at], first);
      sum[i][1] = Dot(sum[i][1], x[i][at], second);
    }
  }
  for (int i = 0; i < M; ++i) {
    _mm512_storeu_ps(out + i * kTileColumns, sum[i][0]);
    _mm512_storeu_ps(out + i * kTileColumns + kBlockRows, sum[i][1]);
  }
}

template <typename W>
void RunTile(const uint16_t* const* x, int m, const W* w0, const W* w1, int64_t k, float* out) {
  switch (m) {
    case 1:
      return Tile<1>(x, w0, w1, k, out);
    case 2:
      return Tile<2>(x, w0, w1, k, out);
    case 3:
      return Tile<3>(x, w0, w1, k, out);
    case 4:
      return Tile<4>(x, w0, w1, k, out);
    case 5:
      return Tile<5>(x, w0, w1, k, out);
    case 6:
      return Tile<6>(x, w0, w1, k, out);
    case 7:
      return Tile<7>(x, w0, w1, k, out);
    case 8:
      return Tile<8>(x, w0, w1, k, out);
    case 9:
      return Tile<9>(x, w0, w1, k, out);
    case 10:
      return Tile<10>(x, w0, w1, k, out);
    case 11:
      return Tile<11>(x, w0, w1, k, out);
    case 12:
      return Tile<12>(x, w0, w1, k, out);
  }
}

}  // namespace
}  // namespace levin
#pragma GCC pop_options

namespace levin {
namespace {

using Product = TileProduct<uint16_t, uint16_t>;

// Seconds of one tile that lies in the caches: the best of several tries, which a busy machine
// rarely spoils all.
double TileSeconds(const Product& product) {
  constexpr int64_t kK = 2048;
  static constexpr std::array<uint16_t, kK> kRow{};
  static constexpr std::array<uint16_t, 2 * kK * kBlockRows> kWeights{};
  std::array<const uint16_t*, kRowsAtOnce> rows;
  rows.fill(kRow.data());
  alignas(64) std::array<float, kRowsAtOnce * kTileColumns> out;
  double best = 1;
  for (int i = 0; i < 20; ++i) {
    const auto start = std::chrono::steady_clock::now();
    product.run(rows.data(), kRowsAtOnce, kWeights.data(), kWeights.data() + kK * kBlockRows, kK,
                out.data());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count());
  }
  return best;
}

}  // namespace

namespace avx512 {

std::optional<Bf16Products> FasterBf16Products(const SimdOps& ops) {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx512bf16")) return std::nullopt;
  const Bf16Products dots{{RunTile<uint16_t>, kRowsAtOnce}, {RunTile<int8_t>, kRowsAtOnce}};
  // Some processors run this instruction at half the rate of fp32, some at twice: the flag does not
  // say which.
  if (TileSeconds(dots.bf16) >= TileSeconds(ops.bf16_bf16)) return std::nullopt;
  return dots;
}

}  // namespace avx512
}  // namespace levin

#else

namespace levin::avx512 {
std::optional<Bf16Products> FasterBf16Products(const SimdOps&) { return std::nullopt; }
}  // namespace levin::avx512

#endif
