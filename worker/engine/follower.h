// The loop of ranks 1 .. N-1: receive a plan, execute it, report the digest. One thread.
#pragma once

#include "common/base/status.h"
#include "worker/engine/links.h"
#include "worker/engine/rank_executor.h"
#include "worker/engine/step_progress.h"

namespace levin {

class Follower final {
 public:
  Follower(RankExecutor& executor, LeaderLink& leader) : executor_(executor), leader_(leader) {}

  // OK after an orderly shutdown, else the first fault.
  Status Run();

  const StepProgress& progress() const { return progress_; }

 private:
  RankExecutor& executor_;
  LeaderLink& leader_;
  StepProgress progress_;
};

}  // namespace levin
