#include "worker/process/step_meter.h"

namespace levin {
namespace {

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

StepKind KindOf(const BatchPlan& plan) {
  bool decode = false, prefill = false;
  for (const PlanRow& row : plan.rows) (row.stepwise ? decode : prefill) = true;
  if (decode && prefill) return StepKind::kMixed;
  return decode ? StepKind::kDecode : prefill ? StepKind::kPrefill : StepKind::kEmpty;
}

Status StepMeter::BeforeRun(const BatchPlan& plan, const StepBatch& batch) {
  FollowBlocks(plan, batch);
  (void)collective_.TakeSpent();
  began_ = clock_.Now();
  return Status::Ok();
}

Status StepMeter::AfterRun(const BatchPlan& plan, const StepBatch& batch) {
  ++steps_;
  metrics_.collective_wait().Observe(
      std::chrono::duration<double>(collective_.TakeSpent()).count());
  if (!metrics_.leader) return Status::Ok();
  const LeaderFamilies& leader = *metrics_.leader;
  const StepKind kind = KindOf(plan);
  leader.steps(kind).Add();
  leader.step_duration(kind).Observe(Seconds(clock_.Now() - began_));
  leader.step_sequences().Observe(static_cast<double>(plan.rows.size()));
  int64_t prefill = 0;
  for (const PlanRow& row : plan.rows) prefill += row.stepwise ? 0 : row.tokens.count;
  leader.step_prefill_tokens().Observe(static_cast<double>(prefill));
  return Status::Ok();
}

void StepMeter::FollowBlocks(const BatchPlan& plan, const StepBatch& batch) {
  int64_t used = blocks_used_;
  for (const SequenceId sequence : plan.finished) {
    const auto found = blocks_of_.find(sequence);
    if (found == blocks_of_.end()) continue;
    used -= found->second;
    blocks_of_.erase(found);
  }
  for (size_t r = 0; r < plan.rows.size(); ++r) {
    const int64_t tokens = batch.row_first[r + 1] - batch.row_first[r];
    const int64_t blocks = (plan.rows[r].position + tokens + block_tokens_ - 1) / block_tokens_;
    int64_t& known = blocks_of_[plan.rows[r].sequence];
    used += blocks - known;
    known = blocks;
  }
  blocks_used_ = used;
}

}  // namespace levin
