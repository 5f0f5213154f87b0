// Frames that wait for a slow link. A write takes one frame; what comes meanwhile is merged: ids of
// later steps are appended to their generation's run, a newer Capacity, FreedAck or heartbeat takes
// the older one's place. So a slow link costs larger frames, not more of them. Frames leave in
// rounds (Accepted, Tokens, Finished and Error, levels), which keeps every generation's own order
// and starves nobody. Pure; one thread at a time.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <unordered_map>

#include "worker/session/out_frame.h"

namespace levin {

class SessionQueue final {
 public:
  void Push(decltype(RouterEvent::what) event);
  void Push(const Capacity& capacity) { pending_.capacity = capacity; }
  void Push(HeartbeatFrame heartbeat) { pending_.heartbeat = std::move(heartbeat); }
  void Push(EpochEndFrame end) { pending_.end = std::move(end); }

  // The next frame to write; nothing: all has left.
  std::optional<OutFrame> Take();

  // About what the waiting frames take on the wire and in memory.
  size_t bytes() const { return bytes_; }

 private:
  struct Round {
    std::deque<OutFrame> accepted;
    TokensFrame tokens;
    size_t token_bytes = 0;
    std::unordered_map<uint64_t, size_t> run_of;  // ordinal -> index in tokens.runs
    std::deque<OutFrame> ended;                   // Finished and Error
    std::optional<FreedAckEvent> freed;
    std::optional<Capacity> capacity;
    std::optional<HeartbeatFrame> heartbeat;
    std::optional<EpochEndFrame> end;
  };

  void Add(TokensEvent event);
  std::optional<OutFrame> TakeFrom(Round& round);
  std::optional<OutFrame> TakeFront(std::deque<OutFrame>& frames);

  Round leaving_, pending_;
  size_t bytes_ = 0;
};

}  // namespace levin
