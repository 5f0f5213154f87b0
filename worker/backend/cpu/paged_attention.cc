#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "worker/backend/cpu/cpu_kernels.h"
#include "worker/backend/cpu/element.h"
#include "worker/backend/cpu/kv_cache_view.h"

namespace levin {
namespace {

constexpr int64_t kDimMax = 1024;

// One query against its sequence's blocks, in order: the running maximum and the sums are rescaled
// whenever a block raises the maximum.
template <typename T>
class PlainQuery final {
 public:
  PlainQuery(const float* query, int64_t dim) : query_(query), dim_(dim) {
    std::fill_n(sums_.begin(), dim, 0.0f);
  }

  void Add(const T* keys, const T* values, int64_t count) {
    std::array<float, kKvBlockTokens> scores;
    float best = max_;
    const float scale = 1.0f / std::sqrt(static_cast<float>(dim_));
    for (int64_t j = 0; j < count; ++j) {
      float dot = 0;
      for (int64_t i = 0; i < dim_; ++i) dot += query_[i] * Load(keys + j * dim_ + i);
      scores[j] = dot * scale;
      best = std::max(best, scores[j]);
    }
    const float shrink = std::exp(max_ - best);  // 0 before the first block
    max_ = best;
    total_ *= shrink;
    for (int64_t i = 0; i < dim_; ++i) sums_[i] *= shrink;
    for (int64_t j = 0; j < count; ++j) {
      const float p = std::exp(scores[j] - best);
      total_ += p;
      for (int64_t i = 0; i < dim_; ++i) sums_[i] += p * Load(values + j * dim_ + i);
    }
  }

  template <typename Out>
  void Finish(Out* out) const {
    for (int64_t i = 0; i < dim_; ++i) Store(out + i, sums_[i] / total_);
  }

 private:
  const float* query_;
  const int64_t dim_;
  float max_ = -std::numeric_limits<float>::infinity();
  float total_ = 0;
  std::array<float, kDimMax> sums_;
};

}  // namespace

void CpuKernels::PagedAttention(const PagedAttentionArgs& args) {
  const int64_t heads = args.query.shape[1];
  const int64_t dim = args.query.shape[2];
  CHECK(dim <= kDimMax && args.out.shape == args.query.shape && heads % args.kv_heads == 0, dim,
        heads, args.kv_heads);
  const KvCacheView view(args.cache.shape, args.layer, args.kv_heads, dim);
  const int64_t group = heads / args.kv_heads;
  const float* queries = F32(args.query);
  const RowTable& rows = args.rows;
  WithFloats(args.cache, [&](const auto* cache) {
    WithFloats(args.out, [&](auto* out) {
      pool_.ParallelFor(rows.tokens() * heads, 1, [&](int64_t begin, int64_t end) {
        for (int64_t item = begin; item < end; ++item) {
          const int64_t token = item / heads;
          const int64_t kv_head = item % heads / group;
          const int32_t* blocks = rows.blocks.data() + rows.block_first[rows.token_row[token]];
          using T = std::remove_const_t<std::remove_pointer_t<decltype(cache)>>;
          PlainQuery<T> state(queries + item * dim, dim);
          const int64_t length = rows.token_position[token] + 1;
          for (int64_t at = 0; at < length; at += kKvBlockTokens) {
            const int64_t block = blocks[at / kKvBlockTokens];
            state.Add(cache + view.Key(block, kv_head), cache + view.Value(block, kv_head),
                      std::min(kKvBlockTokens, length - at));
          }
          state.Finish(out + item * dim);
        }
      });
    });
  });
}

}  // namespace levin
