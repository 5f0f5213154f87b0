#include "worker/group/rank_hello.h"

#include <utility>

namespace levin {

Status CheckHello(const RankHello& leader, const RankHello& rank) {
  const std::string who = "rank " + std::to_string(rank.rank) + " (host " + rank.host + ", pid " +
                          std::to_string(rank.pid) + ")";
  const auto differs = [&who](const std::string& what, const std::string& here,
                              const std::string& there) {
    return FailedPrecondition(who + " cannot join: its " + what + " is " + there +
                              ", the leader's is " + here);
  };
  if (rank.world_size != leader.world_size) {
    return differs("world size", std::to_string(leader.world_size),
                   std::to_string(rank.world_size));
  }
  if (rank.rank < 1 || rank.rank >= leader.world_size) {
    return FailedPrecondition(who + " cannot join: ranks 1 to " +
                              std::to_string(leader.world_size - 1) + " are expected");
  }
  if (rank.protocol != leader.protocol) {
    return differs("group protocol", std::to_string(leader.protocol),
                   std::to_string(rank.protocol));
  }
  if (rank.build_id != leader.build_id) return differs("build", leader.build_id, rank.build_id);
  if (rank.device != leader.device) return differs("device", leader.device, rank.device);
  if (rank.config_hash != leader.config_hash) {
    return FailedPrecondition(
        who + " cannot join: its configuration differs from the leader's (hash " +
        std::to_string(rank.config_hash) + ", expected " + std::to_string(leader.config_hash) +
        "): model folder, dtype, quantization, batch invariance and limits must be equal on all "
        "ranks");
  }
  return Status::Ok();
}

}  // namespace levin
