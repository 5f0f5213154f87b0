// levin.v1.Group on the leader: one Join stream per rank. Frames in go to the RankBoard, frames out
// (Welcome, Pool, plans, heartbeats, Shutdown) to all ranks alike, each queued behind one write.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "worker/engine/links.h"
#include "worker/group/leader_board.h"
#include "worker/group/rank_board.h"

namespace grpc {
class Service;
}

namespace levin {

// Any thread may call any method; RankLink's are the engine's.
class GroupService : public RankLink {
 public:
  virtual grpc::Service& service() = 0;
  // After RankBoard::AwaitJoined and Start.
  virtual Status SendWelcome(const WelcomeFacts& welcome) = 0;
  virtual Status SendPool(const PoolFacts& pool) = 0;
  virtual void SendHeartbeat(uint64_t step, int64_t unix_ms) = 0;  // each second
  // Last words; the streams then end in order and are waited for until `until`.
  virtual void Shutdown(const std::string& reason, TimePoint until) = 0;
  // At once, without a word: the ranks see their stream break.
  virtual void Break(const Status& why) = 0;
};

// `board` and `clock` must outlive the server that runs the service.
std::unique_ptr<GroupService> MakeGroupService(RankBoard& board);

}  // namespace levin
