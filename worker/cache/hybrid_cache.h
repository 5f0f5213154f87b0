// The two regions of a sequence's memory, as ids: one state slot and its KV blocks. All of it or
// nothing, so that a refusal for one resource leaves the other unchanged. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "worker/cache/id_pool.h"

namespace levin {

// Move only; gives both back when it dies. The cache must outlive it.
struct SequenceCache {
  IdLease slot_lease;
  IdLease block_lease;

  int32_t slot() const { return slot_lease.ids()[0]; }
  std::span<const int32_t> blocks() const { return block_lease.ids(); }
};

class HybridCache final {
 public:
  HybridCache(int64_t slots, int64_t blocks) : slots_(slots), blocks_(blocks) {}

  std::optional<SequenceCache> Acquire(int64_t blocks);

  const IdPool& slots() const { return slots_; }
  const IdPool& blocks() const { return blocks_; }

 private:
  IdPool slots_;
  IdPool blocks_;
};

}  // namespace levin
