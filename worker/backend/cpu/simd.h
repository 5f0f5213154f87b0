// The inner loops in vector instructions, one table per instruction set. What they compute is said
// here once; simd_loops.inc writes it once over a vector type. Every sum runs in an order that
// depends on its own length alone, so a row has the same bits in a tile of one and of many.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "worker/backend/cpu/cpu_backend.h"

namespace levin {

// Output rows of a packed block (packed_matrix.h), and of the two that a product takes at once.
constexpr int64_t kBlockRows = 16;
constexpr int64_t kTileColumns = 2 * kBlockRows;

// out[i][0..15] = x_i w0^T, out[i][16..31] = x_i w1^T for m rows x_i [k]; m <= rows_max. w0, w1:
// packed blocks. fp32 fused multiply-adds: the sums over even and over odd k, then their sum.
template <typename X, typename W>
struct TileProduct {
  void (*run)(const X* const* x, int m, const W* w0, const W* w1, int64_t k, float* out) = nullptr;
  int rows_max = 0;
};

// Where a product of many rows has its sums: on the caller's stack, some 300 KB.
struct ProductSpace {
  static constexpr int kRows = 126;
  static constexpr int kBlocks = 8;
  static constexpr int64_t kStretch = 256;              // of k at a time
  static constexpr int64_t kRowStride = kStretch + 16;  // no two rows of a tile in one set

  alignas(64) std::array<float, kRows * kRowStride> x;
  alignas(64) std::array<float, kBlocks * kRows * kBlockRows> out, odd;
  alignas(64) std::array<float, kStretch * kBlockRows> weights;

  // The 16 results of row i of m with block b.
  float* Results(int b, int m, int i) { return out.data() + (int64_t{b} * m + i) * kBlockRows; }
};

// The same sums for m rows and any blocks, at most as many as ProductSpace holds; left there.
template <typename X, typename W>
using RowsProduct = void (*)(const X* const* x, int m, const W* const* w, int blocks, int64_t k,
                             ProductSpace& space);

struct SimdOps {
  TileProduct<float, uint16_t> f32_bf16;
  TileProduct<float, int8_t> f32_int8;
  TileProduct<uint16_t, uint16_t> bf16_bf16;
  TileProduct<uint16_t, int8_t> bf16_int8;

  // Row-major with these strides; n a multiple of 16; one running sum over k per element.
  // multiply: c [m, n] = a [m, k] b [k, n].
  // multiply_add: c = c + (change * c + a b), where change = expm1(x) scales c by e^x: near 1 a
  // rounded e^x would lose digits.
  void (*multiply)(const float* a, int64_t a_stride, const float* b, int64_t b_stride, float* c,
                   int64_t c_stride, int64_t m, int64_t n, int64_t k);
  void (*multiply_add)(const float* a, int64_t a_stride, const float* b, int64_t b_stride, float* c,
                       int64_t c_stride, int64_t m, int64_t n, int64_t k, float change);

  // Any n from here on.
  float (*dot)(const float* x, const float* y, int64_t n);
  void (*silu)(float* x, int64_t n);                        // x = x * sigmoid(x)
  void (*scale)(float* x, float factor, int64_t n);         // x = x * factor
  float (*max)(const float* x, int64_t n);                  // n > 0
  float (*exp_sum)(float* x, float shift, int64_t n);       // x = exp(x - shift); returns their sum
  void (*widen)(const uint16_t* x, float* out, int64_t n);  // bf16 to fp32
  void (*round)(const float* x, uint16_t* out, int64_t n);  // fp32 to bf16, nearest even
  // sum = alpha * residual + beta * update (residual may be null); returns the sum of squares.
  float (*add_scaled)(const float* residual, float alpha, const float* update, float beta,
                      float* sum, int64_t n);
  void (*normalise)(const float* x, float scale, const float* weight, float* out, int64_t n);
  // out = sigmoid(gate) * weight * (x * scale)
  void (*gate_norm)(const float* x, const float* gate, const float* weight, float scale, float* out,
                    int64_t n);
  // One token of lightning attention (model.md 4.5): state [d, d], decay = expm1(-s). d a multiple
  // of 16.
  void (*lightning_step)(const float* q, const float* k, const float* v, float decay, float* state,
                         float* out, int64_t d);

  // Faster than tiles from rows_least rows on; null where they are not.
  RowsProduct<float, uint16_t> rows_f32_bf16 = nullptr;
  RowsProduct<float, int8_t> rows_f32_int8 = nullptr;
  RowsProduct<uint16_t, uint16_t> rows_bf16_bf16 = nullptr;
  RowsProduct<uint16_t, int8_t> rows_bf16_int8 = nullptr;
  int rows_least = 0;
};

// Null for kPlain. batch_invariant: as CpuOptions says.
const SimdOps* FindSimdOps(CpuPath path, bool batch_invariant);

namespace avx2 {
const SimdOps* Ops();
}
namespace avx512 {
const SimdOps* Ops();

// Products of bf16 rows by the bf16 dot instruction, where the processor has it and it is faster
// than those of `ops`: measured, some milliseconds.
struct Bf16Products {
  TileProduct<uint16_t, uint16_t> bf16;
  TileProduct<uint16_t, int8_t> int8;
};
std::optional<Bf16Products> FasterBf16Products(const SimdOps& ops);
}  // namespace avx512

}  // namespace levin
