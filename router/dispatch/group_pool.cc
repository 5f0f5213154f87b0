#include "router/dispatch/group_pool.h"

namespace levin {

EngineClient& GroupPool::Choose() const {
  EngineClient* best = groups_.front();
  int64_t most_free = -1;
  for (EngineClient* group : groups_) {
    if (group->group() == nullptr) continue;
    const int64_t free = group->capacity().free_blocks;
    if (free > most_free) {
      best = group;
      most_free = free;
    }
  }
  return *best;
}

Result<std::unique_ptr<Call>> GroupPool::Submit(Generation generation,
                                                std::unique_ptr<TokenSink> sink) {
  return Choose().Submit(std::move(generation), std::move(sink));
}

Capacity GroupPool::capacity() const { return Choose().capacity(); }

std::shared_ptr<const GroupInfo> GroupPool::group() const { return Choose().group(); }

}  // namespace levin
