// On the watch's thread: heartbeats, hangs, losses and signals.
#include <algorithm>
#include <string>
#include <vector>

#include "common/log/log.h"
#include "worker/process/epoch.h"
#include "worker/process/leader.h"

namespace levin {
namespace {

constexpr Duration kDrainLimit = std::chrono::seconds(90);

}  // namespace

// Everybody speaks, yet the step does not end: the first rank that has not done it is named, the
// leader itself if all others have.
void LeaderProcess::WatchForHang(const StepProgress& progress) {
  const bool hung =
      hang_->Hung(progress.begun, progress.done, progress.has_work, progress.pairs, clock_.Now());
  if (!board_->all_heard()) return hang_->Excuse(clock_.Now());
  if (!hung) return;
  const uint64_t step = progress.begun;
  const std::vector<RankView> views = board_->views();
  const auto late = std::find_if(views.begin(), views.end(),
                                 [step](const RankView& view) { return view.step_done < step; });
  const int rank = late == views.end() ? 0 : static_cast<int>(late - views.begin()) + 1;
  hung_ = true;
  board_->Lose({rank, "hang",
                Unavailable("rank " + std::to_string(rank) + " did not end step " +
                            std::to_string(step) + " in time")});
}

void LeaderProcess::OnTick() {
  board_->Tick();
  const StepProgress* progress = progress_.load();
  if (progress != nullptr)
    hub_->SetSuspect(!board_->all_heard());  // before, ranks are still to come
  hub_->Tick();
  group_->SendHeartbeat(progress != nullptr ? progress->done.load() : 0, clock_.UnixMs());
  if (progress != nullptr) WatchForHang(*progress);
  if (hub_->higher_epoch() > 0 && !options_.epoch_file.empty()) {
    (void)StoreEpoch(options_.epoch_file, hub_->higher_epoch());
    board_->Lose({-1, "other",
                  Unavailable("a router has seen epoch " + std::to_string(hub_->higher_epoch()))});
  }
  if (drain_by_ && clock_.Now() > *drain_by_) cancelling_ = true;
  if (cancelling_) hub_->CancelAll();
  if (!leave_by_ && board_->loss()) {
    // Weights load without a look at anything else, the engine's loop notices by itself.
    leave_by_ = state_.phase == StartupPhase::kReady ? clock_.Now() + kLeaveLimit : clock_.Now();
  }
  if (leave_by_ && clock_.Now() >= *leave_by_)
    emergency_.Leave({ExitCode::kGroupEnded, board_->loss()->status});
}

void LeaderProcess::OnSignal(int count) {
  if (job_)
    emergency_.Leave({ExitCode::kOther,
                      Status(Code::kCancelled, "stopped by a signal before the job was done")});
  const bool serving = state_.phase == StartupPhase::kReady;
  if (!serving || count >= 3) emergency_.Leave({ExitCode::kClean, Status::Ok()});
  Log(LogLevel::kInfo, "drain", {{"signals", count}});
  draining_ = true;
  engine_server_->SetServing("levin.v1.Engine", false);
  if (!drain_by_) drain_by_ = clock_.Now() + kDrainLimit;
  if (count == 2) {
    cancelling_ = true;
    hub_->CancelAll();
  }
  hub_->StartDrain();
}

// On any thread: the first loss wakes the engine out of whatever it waits for.
void LeaderProcess::OnLost(const RankLoss& loss) {
  Log(LogLevel::kError, "group_lost",
      {{"rank", loss.rank}, {"reason", loss.reason}, {"message", loss.status.message()}});
  abort_.Pull(loss.status.message());
  inbox_.Close();
}

}  // namespace levin
