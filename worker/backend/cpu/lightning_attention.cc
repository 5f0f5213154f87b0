#include <algorithm>
#include <array>
#include <cmath>

#include "worker/backend/cpu/cpu_kernels.h"
#include "worker/backend/cpu/element.h"

namespace levin {
namespace {

constexpr int64_t kBlock = 64;

// One head of one row: where its tokens and its state lie.
struct Head {
  const float* qkv;  // of the row's first token; per token d of q, d of k, d of v
  float* out;
  int64_t qkv_stride;  // from a token to the next
  int64_t out_stride;
  int64_t dim;
  double slope;
  float* state;  // [d, d]: key, value

  const float* q(int64_t t) const { return qkv + t * qkv_stride; }
  const float* k(int64_t t) const { return q(t) + dim; }
  const float* v(int64_t t) const { return q(t) + 2 * dim; }
  float* o(int64_t t) const { return out + t * out_stride; }
};

// S = S + expm1(-s) S + k^T v;  o = q S. Multiplying by a rounded exp(-s) instead would lose 2e-4
// of the state in a million tokens at the smallest s.
void PlainStep(const Head& head, float decay, int64_t t) {
  const int64_t d = head.dim;
  const float* q = head.q(t);
  const float* k = head.k(t);
  const float* v = head.v(t);
  float* o = head.o(t);
  std::fill_n(o, d, 0.0f);
  for (int64_t i = 0; i < d; ++i) {
    float* s = head.state + i * d;
    for (int64_t j = 0; j < d; ++j) {
      s[j] += decay * s[j] + k[i] * v[j];
      o[j] += q[i] * s[j];
    }
  }
}

// exp(-s n) for n = 0 .. kBlock, exponents in fp64. Never above 1: no power of exp(+s) is formed.
using Powers = std::array<float, kBlock + 1>;
Powers DecayPowers(double slope) {
  Powers powers;
  for (int64_t n = 0; n <= kBlock; ++n) {
    powers[n] = static_cast<float>(std::exp(-slope * static_cast<double>(n)));
  }
  return powers;
}

// o_i = decay^i (q_i S_in) + sum_{j <= i} decay^(i - j) (q_i k_j) v_j, for i = 1 .. m.
void PlainOutputs(const Head& head, const Powers& powers, int64_t first, int64_t m) {
  const int64_t d = head.dim;
  for (int64_t i = 0; i < m; ++i) {
    const float* q = head.q(first + i);
    float* o = head.o(first + i);
    std::fill_n(o, d, 0.0f);
    for (int64_t a = 0; a < d; ++a) {
      for (int64_t b = 0; b < d; ++b) o[b] += q[a] * head.state[a * d + b];
    }
    for (int64_t b = 0; b < d; ++b) o[b] *= powers[i + 1];
    for (int64_t j = 0; j <= i; ++j) {
      const float* k = head.k(first + j);
      const float* v = head.v(first + j);
      float dot = 0;
      for (int64_t a = 0; a < d; ++a) dot += q[a] * k[a];
      const float weight = powers[i - j] * dot;
      for (int64_t b = 0; b < d; ++b) o[b] += weight * v[b];
    }
  }
}

// S_out = decay^m S_in + sum_j decay^(m - j) k_j^T v_j; the decay as S + expm1(-s m) S, for the
// reason given above.
void PlainState(const Head& head, const Powers& powers, int64_t first, int64_t m) {
  const int64_t d = head.dim;
  const float change = static_cast<float>(std::expm1(-head.slope * static_cast<double>(m)));
  for (int64_t a = 0; a < d; ++a) {
    for (int64_t b = 0; b < d; ++b) {
      float sum = 0;
      for (int64_t j = 0; j < m; ++j) {
        sum += powers[m - 1 - j] * head.k(first + j)[a] * head.v(first + j)[b];
      }
      float& s = head.state[a * d + b];
      s += change * s + sum;
    }
  }
}

void PlainBlock(const Head& head, const Powers& powers, int64_t first, int64_t m) {
  PlainOutputs(head, powers, first, m);
  PlainState(head, powers, first, m);
}

// --- The same in vectors: four small products per block ---

// On the stack: some 210 KB.
struct Scratch {
  alignas(64) std::array<float, kHeadDimMax * kBlock> keys;  // [d, 64], zeros behind the last
  alignas(64) std::array<float, kBlock * kBlock> scores;
  // [64, d]: tokens lie whole pages apart, and would share a few places of the first cache.
  alignas(64) std::array<float, kHeadDimMax * kBlock> queries, values;
};

// Rows of the scores that are computed together.
constexpr int64_t kRowsTogether = 16;

// [d, 64]; a few rows at a time, which the first cache holds however far tokens lie apart.
void TransposeKeys(const Head& head, int64_t first, int64_t m, float* keys) {
  constexpr int64_t kAtOnce = 16;
  for (int64_t begin = 0; begin < head.dim; begin += kAtOnce) {
    for (int64_t j = 0; j < m; ++j) {
      const float* k = head.k(first + j);
      for (int64_t a = begin; a < begin + kAtOnce; ++a) keys[a * kBlock + j] = k[a];
    }
    for (int64_t a = begin; a < begin + kAtOnce; ++a) {
      std::fill(keys + a * kBlock + m, keys + (a + 1) * kBlock, 0.0f);
    }
  }
}

void SimdBlock(const SimdOps& ops, const Head& head, const Powers& powers, int64_t first, int64_t m,
               Scratch& s) {
  const int64_t d = head.dim;
  float* o = head.o(first);
  const float* q = s.queries.data();
  const float* v = s.values.data();
  for (int64_t j = 0; j < m; ++j) {
    std::copy_n(head.q(first + j), d, s.queries.data() + j * d);
    std::copy_n(head.v(first + j), d, s.values.data() + j * d);
  }
  // q_i S_in, then the decay of the way from the block's beginning.
  ops.multiply(q, d, head.state, d, o, head.out_stride, m, d, d);
  for (int64_t i = 0; i < m; ++i) ops.scale(o + i * head.out_stride, powers[i + 1], d);
  // q_i k_j, with the decay between the two.
  TransposeKeys(head, first, m, s.keys.data());
  for (int64_t i = 0; i < m; i += kRowsTogether) {
    const int64_t rows = std::min(kRowsTogether, m - i);
    float* scores = s.scores.data() + i * kBlock;
    // Keys behind the last of these rows are not for them.
    ops.multiply(q + i * d, d, s.keys.data(), kBlock, scores, kBlock, rows,
                 std::min(i + kRowsTogether, kBlock), d);
    for (int64_t r = i; r < i + rows; ++r) {
      float* row = s.scores.data() + r * kBlock;
      for (int64_t j = 0; j <= r; ++j) row[j] *= powers[r - j];
      std::fill(row + r + 1, row + kBlock, 0.0f);
    }
    ops.multiply_add(scores, kBlock, v, d, o + i * head.out_stride, head.out_stride, rows, d,
                     i + rows, 0.0f);
  }
  // S_out, with the decay to the block's end.
  for (int64_t a = 0; a < d; ++a) {
    float* row = s.keys.data() + a * kBlock;
    for (int64_t j = 0; j < m; ++j) row[j] *= powers[m - 1 - j];
  }
  const float change = static_cast<float>(std::expm1(-head.slope * static_cast<double>(m)));
  ops.multiply_add(s.keys.data(), kBlock, v, d, head.state, d, d, d, m, change);
}

void RunRow(const SimdOps* ops, const Head& head, int64_t position, int64_t tokens, bool stepwise) {
  if (stepwise) {
    const float decay = static_cast<float>(std::expm1(-head.slope));
    for (int64_t t = 0; t < tokens; ++t) {
      if (ops == nullptr) {
        PlainStep(head, decay, t);
      } else {
        ops->lightning_step(head.q(t), head.k(t), head.v(t), decay, head.state, head.o(t),
                            head.dim);
      }
    }
    return;
  }
  const Powers powers = DecayPowers(head.slope);
  Scratch scratch;
  for (int64_t t = 0; t < tokens;) {
    // Blocks end where 64 divides the absolute position: the same sums however a prompt was cut.
    const int64_t m = std::min(tokens - t, kBlock - (position + t) % kBlock);
    if (ops == nullptr) {
      PlainBlock(head, powers, t, m);
    } else {
      SimdBlock(*ops, head, powers, t, m, scratch);
    }
    t += m;
  }
}

}  // namespace

void CpuKernels::LightningAttention(const LightningAttentionArgs& args) {
  const int64_t heads = args.out.shape[1];
  const int64_t dim = args.out.shape[2];
  const RowTable& rows = args.rows;
  CHECK(dim <= kHeadDimMax && args.qkv.shape == (Shape{args.out.shape[0], heads, 3 * dim}) &&
            args.states.shape[2] == heads && args.states.shape[3] == dim * dim &&
            static_cast<int64_t>(args.slopes.size()) == heads && args.layer < args.states.shape[1],
        ToString(args.qkv.shape), ToString(args.states.shape));
  const float* qkv = F32(args.qkv);
  float* out = F32(args.out);
  float* states = F32(args.states);
  const SimdOps* ops = dim % kBlockRows == 0 ? simd_ : nullptr;
  pool_.ParallelFor(rows.rows() * heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t row = item / heads;
      const int64_t h = item % heads;
      const int64_t first = rows.first[row];
      const int64_t state = ((rows.slot[row] * args.states.shape[1] + args.layer) * heads + h);
      const Head head{qkv + (first * heads + h) * 3 * dim,
                      out + (first * heads + h) * dim,
                      heads * 3 * dim,
                      heads * dim,
                      dim,
                      args.slopes[h],
                      states + state * dim * dim};
      // Whatever the slot's last tenant left, NaN included, must not be read.
      if (rows.fresh[row] != 0) std::fill_n(head.state, dim * dim, 0.0f);
      RunRow(ops, head, rows.position[row], rows.first[row + 1] - first, rows.stepwise[row] != 0);
    }
  });
}

}  // namespace levin
