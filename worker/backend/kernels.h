// Every operation of the network (model.md), one struct of arguments and one method each. The CPU
// kernels are the specification; another device implements the same set. Shapes stand behind the
// fields; T = tokens of the step, R = rows. "act" is the dtype of activations: f32 or bf16.
//
// Arguments are CHECKed, nothing here fails for reasons of the world. All sums run in fp32 or
// wider, whatever act is; what an op rounds to bf16 it rounds once. An element of the output is
// computed in an order that depends on neither T nor R nor the place in the batch: the same row
// gives the same bits in any company.
#pragma once

#include <cstdint>
#include <span>

#include "common/base/types.h"
#include "worker/tensor/tensor.h"

namespace levin {

constexpr int64_t kKvBlockTokens = 64;
constexpr int64_t kHeadDimMax = 256;
constexpr int64_t kHeadsPerKvHeadMax = 64;

// The weights of y = W x. Row-major [rows, cols], or in the backend's own order once packed.
struct WeightMatrix {
  TensorView data;   // bf16 or int8
  TensorView scale;  // [rows] f32, int8 only: weight = scale * q
  int64_t rows = 0;
  int64_t cols = 0;
  bool packed = false;
};

// The rows of a step: StepBatch as the kernels read it.
struct RowTable {
  std::span<const int32_t> first;           // [R + 1], into tokens
  std::span<const int64_t> position;        // [R], of the row's first token
  std::span<const int32_t> slot;            // [R]
  std::span<const uint8_t> fresh;           // [R]: the state starts from zero
  std::span<const uint8_t> stepwise;        // [R]: one-token form of lightning attention
  std::span<const int32_t> block_first;     // [R + 1], into blocks
  std::span<const int32_t> blocks;          // KV blocks, in order of position
  std::span<const int32_t> token_row;       // [T]
  std::span<const int64_t> token_position;  // [T]

  int64_t rows() const { return static_cast<int64_t>(slot.size()); }
  int64_t tokens() const { return static_cast<int64_t>(token_row.size()); }
};

// Rows of the table that this rank does not hold come out as zeros.
struct EmbedArgs {
  std::span<const TokenId> tokens;  // [T]
  TensorView table;                 // [rows, H] bf16: ids [first, first + rows)
  int64_t first = 0;
  TensorView out;  // [T, H] f32
};

// x = alpha * residual + beta * update; normed = weight * x / sqrt(mean(x^2) + eps), and the same
// rounded to act   (model.md 2.2). The residual branch goes on in fp32: only operands of products
// are rounded.
struct RmsNormArgs {
  TensorView residual;  // [T, H] f32; none: x = beta * update
  TensorView update;    // [T, H] f32; overwritten when there is no place for the sum
  float alpha = 1;
  float beta = 1;
  TensorView weight;  // [H] f32
  float eps = 0;
  TensorView sum;     // [T, H] f32: x itself; may be none; may be `residual`
  TensorView normed;  // [T, H] f32; may be `residual`
  TensorView out;     // [T, H] act; `normed` itself where act is f32
};

enum class Epilogue : uint8_t { kNone, kSilu };

struct MatMulArgs {
  TensorView x;                // [M, K] f32 or bf16
  const WeightMatrix* weight;  // [N, K]
  TensorView out;              // [M, N] f32 or bf16
  Epilogue epilogue = Epilogue::kNone;
};

// Rotates the first rotary_dim of each head, pairs (j, j + rotary_dim / 2)   (model.md 3)
struct RopeArgs {
  TensorView x;                        // [T, heads, d] f32, in place
  std::span<const float> inv_freq;     // [rotary_dim / 2]
  std::span<const int64_t> positions;  // [T]
};

// Keys and values of all softmax layers: [blocks, 2 * layers, g, 64 * d] f32 or bf16; the keys of
// a layer at 2 * layer, its values behind them. Of a block and head, keys lie as [d, 64] (all
// tokens of a dimension side by side: scores need no horizontal sums), values as [64, d].
struct StoreKvArgs {
  TensorView keys, values;  // [T, g, d] f32
  RowTable rows;
  TensorView cache;
  int layer = 0;
};

// softmax(q k / sqrt(d)) v over everything up to the token itself; query head h reads KV head
// h / (heads / g). The keys of the step are in the cache already.
struct PagedAttentionArgs {
  TensorView query;  // [T, heads, d] f32
  RowTable rows;
  TensorView cache;
  int layer = 0;
  int64_t kv_heads = 0;
  TensorView pieces;  // [T] i32: scratch
  TensorView out;     // [T, heads, d] act
};

// model.md 4.5. In block form the blocks end at absolute positions that 64 divides.
struct LightningAttentionArgs {
  TensorView qkv;  // [T, heads, 3 * d] f32, after SiLU
  RowTable rows;
  TensorView states;  // [slots, layers, heads, d * d] f32, updated in place
  int layer = 0;
  std::span<const double> slopes;  // [heads]: s of model.md 4.4, this rank's slice
  TensorView out;                  // [T, heads, d] f32
};

struct SumSquaresArgs {
  TensorView x;    // [T, n] f32
  TensorView out;  // [T] f32
};

// out = sigmoid(gate) * weight * x / sqrt(sum_squares / width + eps)   (model.md 4.6)
struct GateNormArgs {
  TensorView x;            // [T, n] f32
  TensorView gate;         // [T, n] f32; overwritten
  TensorView sum_squares;  // [T] f32, over the heads of all ranks
  int64_t width = 0;       // of the heads of all ranks
  TensorView weight;       // [n] f32
  float eps = 0;
  TensorView out;  // [T, n] act
};

// fp32 logits, softmax, the k best (ties: lowest index), renormalised over them   (model.md 5.1)
struct RouteExpertsArgs {
  TensorView x;     // [T, H] f32
  TensorView gate;  // [E, H] f32
  bool round_logits_to_bf16 = false;
  TensorView logits;   // [T, E] f32
  TensorView experts;  // [T, k] i32, best first
  TensorView weights;  // [T, k] f32
};

// out = sum over a token's experts, ascending, of weight * w2 (SiLU(w1 x) * (w3 x))   (5.2, 5.3)
struct ExpertMatMulArgs {
  TensorView x;                              // [T, H] act
  std::span<const WeightMatrix> w1, w3, w2;  // [E] of [I, H], [I, H], [H, I]
  TensorView experts;                        // [T, k] i32
  TensorView weights;                        // [T, k] f32
  TensorView hidden;                         // [T * k, I] act: scratch
  TensorView order;                          // [2 * T * k + E + 1] i32: scratch
  TensorView out;                            // [T, H] f32
};

struct GatherRowsArgs {
  TensorView x;                      // [T, n]
  std::span<const int32_t> indices;  // [M]
  TensorView out;                    // [M, n], dtype of x
};

class Kernels {
 public:
  virtual ~Kernels() = default;

  virtual void Embed(const EmbedArgs& args) = 0;
  virtual void RmsNorm(const RmsNormArgs& args) = 0;
  virtual void MatMul(const MatMulArgs& args) = 0;
  virtual void Rope(const RopeArgs& args) = 0;
  virtual void StoreKv(const StoreKvArgs& args) = 0;
  virtual void PagedAttention(const PagedAttentionArgs& args) = 0;
  virtual void LightningAttention(const LightningAttentionArgs& args) = 0;
  virtual void SumSquares(const SumSquaresArgs& args) = 0;
  virtual void GateNorm(const GateNormArgs& args) = 0;
  virtual void RouteExperts(const RouteExpertsArgs& args) = 0;
  virtual void ExpertMatMul(const ExpertMatMulArgs& args) = 0;
  virtual void GatherRows(const GatherRowsArgs& args) = 0;
};

}  // namespace levin
