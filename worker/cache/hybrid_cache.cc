#include "worker/cache/hybrid_cache.h"

#include <utility>

namespace levin {

std::optional<SequenceCache> HybridCache::Acquire(int64_t blocks) {
  std::optional<IdLease> slot = slots_.Acquire(1);
  if (!slot) return std::nullopt;
  std::optional<IdLease> pages = blocks_.Acquire(blocks);
  if (!pages) return std::nullopt;  // the slot's lease gives itself back
  return SequenceCache{*std::move(slot), *std::move(pages)};
}

}  // namespace levin
