#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "worker/backend/cpu/cpu_kernels.h"
#include "worker/backend/cpu/element.h"
#include "worker/backend/cpu/kv_cache_view.h"

namespace levin {
namespace {

constexpr int64_t kBlock = kKvBlockTokens;
constexpr int64_t kDimMax = kHeadDimMax;
constexpr int64_t kQueriesMax = kHeadsPerKvHeadMax;  // that read a block together
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Queries of one row that share a KV head: `tokens` neighbouring tokens times the heads of the
// group, in this order. Blocks are added front to back; the running maximum and the sums are
// rescaled whenever a block raises the maximum. What one query computes does not depend on the
// others.
struct Queries {
  const float* first;    // the first token's first head of the group
  int64_t token_stride;  // from a token to the next
  int64_t group;         // heads
  int64_t dim;
  int64_t position;  // of the first token
  int64_t tokens;

  int64_t count() const { return tokens * group; }
  const float* query(int64_t i) const { return first + i / group * token_stride + i % group * dim; }
  // Keys of the block at `at` that query i may read: <= 0 when none.
  int64_t Visible(int64_t i, int64_t at) const {
    return std::min(kBlock, position + i / group + 1 - at);
  }
};

// On the stack: some 300 KB.
struct Scratch {
  std::array<float, kQueriesMax> best, total;
  alignas(64) std::array<float, kQueriesMax * kBlock> scores;
  alignas(64) std::array<float, kQueriesMax * kDimMax> queries, sums;
  alignas(64) std::array<float, kBlock * kDimMax> keys, values;  // widened
};

// --- The specification ---

template <typename T>
void PlainBlock(const Queries& q, const T* keys, const T* values, int64_t at, Scratch& s) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(q.dim));
  for (int64_t i = 0; i < q.count(); ++i) {
    const int64_t visible = q.Visible(i, at);
    if (visible <= 0) continue;
    std::array<float, kBlock> scores;
    float best = s.best[i];
    for (int64_t j = 0; j < visible; ++j) {
      float dot = 0;
      for (int64_t d = 0; d < q.dim; ++d) dot += q.query(i)[d] * Load(keys + d * kBlock + j);
      scores[j] = dot * scale;
      best = std::max(best, scores[j]);
    }
    const float shrink = std::exp(s.best[i] - best);  // 0 before the first block
    float* sums = s.sums.data() + i * q.dim;
    for (int64_t d = 0; d < q.dim; ++d) sums[d] *= shrink;
    s.total[i] *= shrink;
    s.best[i] = best;
    for (int64_t j = 0; j < visible; ++j) {
      const float p = std::exp(scores[j] - best);
      s.total[i] += p;
      for (int64_t d = 0; d < q.dim; ++d) sums[d] += p * Load(values + j * q.dim + d);
    }
  }
}

// --- The same in vectors ---

// Front to back, as memory is read fastest; the products go back and forth.
const float* Widened(const SimdOps&, const float* block, int64_t n, float* place) {
  std::copy_n(block, n, place);
  return place;
}
const float* Widened(const SimdOps& ops, const uint16_t* block, int64_t n, float* place) {
  ops.widen(block, place, n);
  return place;
}

template <typename T>
void SimdBlock(const SimdOps& ops, const Queries& q, const T* keys, const T* values, int64_t at,
               Scratch& s) {
  // Positions ascend: the queries that see nothing of this block come first.
  int64_t from = 0;
  while (q.Visible(from, at) <= 0) from += q.group;
  const int64_t count = q.count() - from;
  float* scores = s.scores.data();
  const float* wide_keys = Widened(ops, keys, kBlock * q.dim, s.keys.data());
  ops.multiply(s.queries.data() + from * q.dim, q.dim, wide_keys, kBlock, scores, kBlock, count,
               kBlock, q.dim);
  for (int64_t i = from; i < q.count(); ++i) {
    float* row = scores + (i - from) * kBlock;
    const int64_t visible = q.Visible(i, at);
    const float best = std::max(s.best[i], ops.max(row, visible));
    // Never e^(-inf - best) through the vector exp, which holds its argument in range.
    const float shrink = s.best[i] == kMinusInfinity ? 0.0f : std::exp(s.best[i] - best);
    s.best[i] = best;
    s.total[i] = s.total[i] * shrink + ops.exp_sum(row, best, visible);
    // What lies beyond may be a former tenant's: no weight. The product below ends where the last
    // query's keys end.
    std::fill(row + visible, row + kBlock, 0.0f);
    ops.scale(s.sums.data() + i * q.dim, shrink, q.dim);
  }
  const float* wide_values = Widened(ops, values, kBlock * q.dim, s.values.data());
  ops.multiply_add(scores, kBlock, wide_values, q.dim, s.sums.data() + from * q.dim, q.dim, count,
                   q.dim, q.Visible(q.count() - 1, at), 0.0f);
}

void Begin(const Queries& q, Scratch& s) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(q.dim));
  std::fill_n(s.best.begin(), q.count(), kMinusInfinity);
  std::fill_n(s.total.begin(), q.count(), 0.0f);
  std::fill_n(s.sums.begin(), q.count() * q.dim, 0.0f);
  for (int64_t i = 0; i < q.count(); ++i) {
    for (int64_t d = 0; d < q.dim; ++d) s.queries[i * q.dim + d] = q.query(i)[d] * scale;
  }
}

}  // namespace

void CpuKernels::PagedAttention(const PagedAttentionArgs& args) {
  const int64_t heads = args.query.shape[1];
  const int64_t dim = args.query.shape[2];
  const int64_t group = heads / args.kv_heads;
  CHECK(dim <= kDimMax && args.out.shape == args.query.shape && heads % args.kv_heads == 0 &&
            group <= kQueriesMax,
        dim, heads, args.kv_heads);
  const KvCacheView view(args.cache.shape, args.layer, args.kv_heads, dim);
  const float* queries = F32(args.query);
  const RowTable& rows = args.rows;
  const bool vectors = simd_ != nullptr && dim % kBlockRows == 0;

  // Pieces of a row's tokens, as many as fill the scratch.
  const int64_t at_once = kQueriesMax / group;
  int32_t* const piece_first = I32(args.pieces);
  int64_t pieces = 0;
  for (int64_t row = 0; row < rows.rows(); ++row) {
    for (int64_t t = rows.first[row]; t < rows.first[row + 1]; t += at_once) {
      piece_first[pieces++] = static_cast<int32_t>(t);
    }
  }
  WithFloats(args.cache, [&](const auto* cache) {
    WithFloats(args.out, [&](auto* out) {
      pool_.ParallelFor(pieces * args.kv_heads, 1, [&](int64_t begin, int64_t end) {
        Scratch s;
        for (int64_t item = begin; item < end; ++item) {
          const int64_t first = piece_first[item / args.kv_heads];
          const int64_t kv_head = item % args.kv_heads;
          const int64_t row = rows.token_row[first];
          const int64_t offset = (first * heads + kv_head * group) * dim;
          const Queries q{queries + offset,
                          heads * dim,
                          group,
                          dim,
                          rows.token_position[first],
                          std::min(at_once, rows.first[row + 1] - first)};
          Begin(q, s);
          const int32_t* blocks = rows.blocks.data() + rows.block_first[row];
          for (int64_t at = 0; at < q.position + q.tokens; at += kBlock) {
            const auto* keys = cache + view.Key(blocks[at / kBlock], kv_head);
            const auto* values = cache + view.Value(blocks[at / kBlock], kv_head);
            if (vectors) {
              SimdBlock(*simd_, q, keys, values, at, s);
            } else {
              PlainBlock(q, keys, values, at, s);
            }
          }
          for (int64_t i = 0; i < q.count(); ++i) {
            auto* to = out + offset + i / group * q.token_stride + i % group * dim;
            for (int64_t d = 0; d < dim; ++d) Store(to + d, s.sums[i * dim + d] / s.total[i]);
          }
        }
      });
    });
  });
}

}  // namespace levin
