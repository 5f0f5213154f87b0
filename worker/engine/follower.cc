#include "worker/engine/follower.h"

#include <optional>
#include <string>

namespace levin {

Status Follower::Run() {
  while (true) {
    ASSIGN_OR_RETURN_STATUS(const std::optional<std::string> encoded, leader_.ReceivePlan());
    if (!encoded) return Status::Ok();
    progress_.begun = progress_.done + 1;  // the executor checks that plans are numbered so
    ASSIGN_OR_RETURN_STATUS(const StepResult result, executor_.Execute(*encoded));
    progress_.done = result.step;
    RETURN_IF_ERROR(leader_.SendDigest(result.step, result.digest));
  }
}

}  // namespace levin
