// Where the keys and values of one layer lie in the cache. Offsets are 64 bit throughout: block
// number times stride passes 2^31 elements early.
#pragma once

#include "common/base/check.h"
#include "worker/backend/kernels.h"

namespace levin {

struct KvCacheView {
  int64_t block_stride = 0;  // elements from a block to the next
  int64_t head_stride = 0;   // 64 * d
  int64_t keys = 0;          // offset of the layer's keys in a block; values follow
  int64_t values = 0;

  KvCacheView(const Shape& cache, int layer, int64_t kv_heads, int64_t dim)
      : block_stride(cache.row_elements()),
        head_stride(kKvBlockTokens * dim),
        keys(2 * layer * kv_heads * head_stride),
        values(keys + kv_heads * head_stride) {
    CHECK(cache.rank() == 4 && cache[2] == kv_heads && cache[3] == head_stride &&
              2 * layer + 1 < cache[1],
          ToString(cache), layer, kv_heads, dim);
  }

  // Where the block's keys [d, 64] and values [64, d] of a head begin.
  int64_t Key(int64_t block, int64_t head) const {
    return block * block_stride + keys + head * head_stride;
  }
  int64_t Value(int64_t block, int64_t head) const {
    return block * block_stride + values + head * head_stride;
  }
};

}  // namespace levin
