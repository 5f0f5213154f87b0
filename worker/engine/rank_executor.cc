#include "worker/engine/rank_executor.h"

#include <xxhash.h>

#include <span>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "worker/plan/plan_codec.h"

namespace levin {
namespace {

// What must be equal on every rank after a step.
uint64_t Digest(std::string_view encoded, const StepResult& result, uint64_t table) {
  std::vector<uint64_t> facts = {XXH3_64bits(encoded.data(), encoded.size()), table};
  for (const RowSample& sample : result.samples)
    facts.insert(facts.end(), {sample.sequence, static_cast<uint64_t>(sample.token.token),
                               uint64_t{sample.numeric_fault}});
  return XXH3_64bits(facts.data(), facts.size() * sizeof(uint64_t));
}

}  // namespace

RankExecutor::RankExecutor(PlanLimits limits, Network& network, const std::vector<bool>& defined,
                           StepObserver* observer)
    : limits_(limits),
      network_(network),
      observer_(observer),
      table_(limits),
      sampler_(limits.vocab_size, defined),
      logits_(static_cast<size_t>(limits.rows_max) * static_cast<size_t>(limits.vocab_size)) {
  CHECK_EQ(limits.vocab_size, network.vocab_size());
}

Result<StepResult> RankExecutor::Execute(std::string_view encoded) {
  ASSIGN_OR_RETURN(const BatchPlan plan, DecodePlan(encoded));
  RETURN_ERROR_IF(CheckOrder(plan));
  ASSIGN_OR_RETURN(const StepBatch batch, table_.Apply(plan));
  if (batch.row_count() > 0) RETURN_ERROR_IF(RunNetwork(plan, batch));
  StepResult result;
  result.step = last_step_ = plan.step;
  Sample(plan, result);
  result.digest = Digest(encoded, result, table_.Checksum());
  return result;
}

// A plan left out or played twice would feed a state twice or never.
Status RankExecutor::CheckOrder(const BatchPlan& plan) const {
  if (plan.epoch != limits_.epoch)
    return FailedPrecondition("plan of epoch " + std::to_string(plan.epoch) + ", expected " +
                              std::to_string(limits_.epoch));
  if (plan.step != last_step_ + 1)
    return FailedPrecondition("plan of step " + std::to_string(plan.step) + ", expected " +
                              std::to_string(last_step_ + 1));
  return Status::Ok();
}

Status RankExecutor::RunNetwork(const BatchPlan& plan, const StepBatch& batch) {
  if (observer_ != nullptr) RETURN_IF_ERROR(observer_->BeforeRun(plan, batch));
  const size_t wanted = batch.logit_tokens.size() * static_cast<size_t>(limits_.vocab_size);
  RETURN_IF_ERROR(network_.Run(batch, std::span(logits_).first(wanted)));
  if (observer_ != nullptr) RETURN_IF_ERROR(observer_->AfterRun(plan, batch));
  return Status::Ok();
}

void RankExecutor::Sample(const BatchPlan& plan, StepResult& result) {
  const auto vocab = static_cast<size_t>(limits_.vocab_size);
  for (const PlanRow& row : plan.rows) {
    if (row.draws == 0) continue;
    const TableEntry& entry = table_.at(row.sequence);
    const auto logits = std::span(logits_).subspan(result.samples.size() * vocab, vocab);
    Draw draw = sampler_.Sample(logits, entry.sampling, entry.history, entry.drawn);
    if (!draw.numeric_fault) table_.RecordDraw(row.sequence, draw.token.token);
    result.samples.push_back({row.sequence, std::move(draw.token), draw.numeric_fault});
  }
}

}  // namespace levin
