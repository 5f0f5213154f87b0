#include "worker/backend/cpu/cpu_kernels.h"
#include "worker/backend/cpu/element.h"
#include "worker/backend/cpu/kv_cache_view.h"

namespace levin {

void CpuKernels::StoreKv(const StoreKvArgs& args) {
  const int64_t heads = args.keys.shape[1];
  const int64_t dim = args.keys.shape[2];
  CHECK(args.keys.shape == args.values.shape, ToString(args.values.shape));
  const KvCacheView view(args.cache.shape, args.layer, heads, dim);
  const float* keys = F32(args.keys);
  const float* values = F32(args.values);
  const RowTable& rows = args.rows;
  WithFloats(args.cache, [&](auto* cache) {
    pool_.ParallelFor(rows.tokens(), 16, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t position = rows.token_position[t];
        const int64_t place = rows.block_first[rows.token_row[t]] + position / kKvBlockTokens;
        CHECK_LT(place, int64_t{rows.block_first[rows.token_row[t] + 1]});
        const int64_t block = rows.blocks[place];
        const int64_t in_block = position % kKvBlockTokens;
        for (int64_t h = 0; h < heads; ++h) {
          auto* key = cache + view.Key(block, h) + in_block;
          auto* value = cache + view.Value(block, h) + in_block * dim;
          const int64_t from = (t * heads + h) * dim;
          for (int64_t i = 0; i < dim; ++i) Store(key + i * kKvBlockTokens, keys[from + i]);
          for (int64_t i = 0; i < dim; ++i) Store(value + i, values[from + i]);
        }
      }
    });
  });
}

}  // namespace levin
