#include "worker/process/leader_gauges.h"

#include <algorithm>
#include <chrono>

namespace levin {
namespace {

// Bytes on one rank. State, KV and what is reserved for tokens to come are together the
// reservation; the sum of all kinds is the pool.
void WriteCache(const LeaderView& view, const LeaderFamilies& families) {
  const Capacity& capacity = view.capacity;
  const int64_t slot = capacity.bytes_per_slot / view.ranks,
                block = capacity.bytes_per_block / view.ranks;
  const int64_t slots_used = capacity.total_slots - capacity.free_slots;
  const int64_t blocks_used = std::min(view.blocks_used, capacity.reserved_blocks);
  const auto write = [&families](CacheKind kind, int64_t bytes) {
    families.cache_bytes(kind).Set(static_cast<double>(bytes));
  };
  write(CacheKind::kState, slots_used * slot);
  write(CacheKind::kKv, blocks_used * block);
  write(CacheKind::kReservedUnused, (capacity.reserved_blocks - blocks_used) * block);
  write(CacheKind::kFree,
        capacity.free_slots * slot + (capacity.total_blocks - capacity.reserved_blocks) * block);
  families.state_slots(SlotState::kUsed).Set(static_cast<double>(slots_used));
  families.state_slots(SlotState::kFree).Set(static_cast<double>(capacity.free_slots));
}

void WriteRanks(const LeaderView& view, const LeaderFamilies& families) {
  families.rank_up(PeerRank{0}).Set(1);
  for (size_t i = 0; i < view.others.size(); ++i) {
    const RankView& rank = view.others[i];
    const PeerRank peer{static_cast<int32_t>(i) + 1};
    families.rank_up(peer).Set(rank.up ? 1 : 0);
    families.heartbeat_age(peer).Set(std::chrono::duration<double>(rank.silent).count());
    const uint64_t lag = view.steps_done > rank.step_done ? view.steps_done - rank.step_done : 0;
    families.rank_step_lag(peer).Set(static_cast<double>(lag));
  }
}

}  // namespace

void WriteGauges(const LeaderView& view, const LeaderFamilies& families) {
  families.epoch().Set(static_cast<double>(view.epoch));
  families.connected_routers().Set(view.connected_routers);
  families.digest_interval_steps().Set(1);
  families.sequences(SequenceState::kRunning).Set(static_cast<double>(view.capacity.running));
  families.sequences(SequenceState::kWaiting).Set(static_cast<double>(view.capacity.waiting));
  WriteCache(view, families);
  WriteRanks(view, families);
}

}  // namespace levin
