// What health and metrics show, on their server's threads.
#include <optional>
#include <string>

#include "worker/process/leader.h"
#include "worker/process/leader_gauges.h"

namespace levin {

HealthView LeaderProcess::Health() const {
  HealthView view;
  view.phase = draining_ ? "draining" : std::string(Name(state_.phase));
  view.bytes_done = state_.bytes_done;
  view.bytes_total = state_.bytes_total;
  view.live = !hung_;
  const std::optional<RankLoss> loss = board_->loss();
  if (loss) {
    view.why = loss->status.message();
  } else if (!board_->all_heard()) {
    view.why = "a rank was not heard for 3 s";
  }
  view.ready = view.phase == "ready" && view.why.empty();
  return view;
}

std::string LeaderProcess::Metrics() {
  const StepProgress* progress = progress_.load();
  if (progress != nullptr && meter_) {
    LeaderView view;
    view.epoch = epoch_;
    view.steps_done = progress->done;
    view.connected_routers = hub_->connected_routers();
    view.capacity = hub_->capacity();
    view.blocks_used = meter_->blocks_used();
    view.ranks = options_.world_size;
    view.others = board_->views();
    WriteGauges(view, *metrics_.leader);
  }
  WriteProcessGauges(metrics_, state_, draining_);
  return metrics_.Serialize();
}

}  // namespace levin
