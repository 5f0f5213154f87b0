// A rank's end of the Join stream. Frames in go to the LeaderBoard; what the rank has to say is
// queued behind one write.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "worker/engine/links.h"
#include "worker/group/leader_board.h"
#include "worker/group/rank_board.h"
#include "worker/group/rank_hello.h"

namespace levin {

// Any thread may call any method; LeaderLink's are the engine's.
class GroupClient : public LeaderLink {
 public:
  virtual void SendProgress(uint64_t bytes_done, uint64_t bytes_total) = 0;
  virtual void SendLoaded(const LoadedFacts& facts) = 0;
  virtual void SendReady(int64_t step_us) = 0;
  virtual void SendHeartbeat(uint64_t step_begun, uint64_t step_done) = 0;  // each second
  virtual void SendFault(uint64_t step, const std::string& operation, const Status& status) = 0;
  // Sends what waits, ends the stream and waits until it is over or the time is up.
  virtual void Close(TimePoint until) = 0;
};

// Waits for the leader's port until `limit` is over (kUnavailable), opens the stream and says
// Hello. A refusal and every later break come out of the board. `board` must outlive the client.
Result<std::unique_ptr<GroupClient>> JoinGroup(const std::string& address, const RankHello& hello,
                                               LeaderBoard& board, Duration limit);

}  // namespace levin
