#include "worker/engine/sequence_table.h"

#include <xxhash.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "worker/plan/sampling_check.h"

namespace levin {
namespace {

template <typename T>
std::span<const T> Part(const std::vector<T>& all, Range range) {
  return std::span(all).subspan(static_cast<size_t>(range.first), static_cast<size_t>(range.count));
}

Status BadPlan(SequenceId sequence, std::string what) {
  return InvalidArgument("plan, sequence " + std::to_string(sequence) + ": " + std::move(what));
}

Status CheckIds(SequenceId sequence, std::span<const TokenId> ids, int32_t vocab_size) {
  for (TokenId id : ids)
    if (id < 0 || id >= vocab_size)
      return BadPlan(sequence, "token " + std::to_string(id) + ", expected an id in [0, " +
                                   std::to_string(vocab_size) + ")");
  return Status::Ok();
}

// Marks a piece of memory as owned; false when there is no such piece or it has an owner.
bool Take(int32_t id, std::vector<bool>& used) {
  const auto at = static_cast<size_t>(id);
  if (id < 0 || at >= used.size() || used[at]) return false;
  used[at] = true;
  return true;
}

int64_t RowTokens(const PlanRow& row) { return std::max(row.tokens.count, 1); }

Status CheckRow(const PlanRow& row, const TableEntry& entry, int32_t block_tokens) {
  if (row.position != entry.computed)
    return BadPlan(row.sequence, "row at position " + std::to_string(row.position) + ", expected " +
                                     std::to_string(entry.computed));
  if (row.fresh != (entry.computed == 0))
    return BadPlan(row.sequence, "the first row must start from zero, and no other");
  if (row.draws < 0 || row.draws > 1)
    return BadPlan(row.sequence, std::to_string(row.draws) + " draws, expected 0 or 1");
  if ((row.tokens.count == 0) != (entry.drawn > 0))
    return BadPlan(row.sequence, "a row names tokens until one was drawn, and none from then on");
  const int64_t room = static_cast<int64_t>(entry.blocks.size()) * block_tokens;
  if (entry.computed + RowTokens(row) > room)
    return BadPlan(row.sequence, std::to_string(entry.computed + RowTokens(row)) +
                                     " positions, reserved are " + std::to_string(room));
  return Status::Ok();
}

}  // namespace

SequenceTable::SequenceTable(PlanLimits limits)
    : limits_(limits),
      slot_used_(static_cast<size_t>(limits.slots)),
      block_used_(static_cast<size_t>(limits.blocks)) {}

Result<StepBatch> SequenceTable::Apply(const BatchPlan& plan) {
  for (SequenceId sequence : plan.finished) RETURN_ERROR_IF(Finish(sequence));
  for (const NewSequence& started : plan.started) RETURN_ERROR_IF(Start(plan, started));
  if (plan.rows.size() > static_cast<size_t>(limits_.rows_max))
    return Error(InvalidArgument("plan has " + std::to_string(plan.rows.size()) +
                                 " rows, expected at most " + std::to_string(limits_.rows_max)));
  StepBatch batch;
  batch.row_first = {0};
  batch.block_first = {0};
  for (const PlanRow& row : plan.rows) RETURN_ERROR_IF(AddRow(plan, row, batch));
  return batch;
}

const TableEntry& SequenceTable::at(SequenceId sequence) const {
  const auto it = entries_.find(sequence);
  CHECK(it != entries_.end(), sequence);
  return it->second;
}

void SequenceTable::RecordDraw(SequenceId sequence, TokenId token) {
  const auto it = entries_.find(sequence);
  CHECK(it != entries_.end(), sequence);
  TableEntry& entry = it->second;
  entry.last_token = token;
  ++entry.drawn;
  if (entry.sampling.counts_tokens()) entry.history.Add(token);
}

uint64_t SequenceTable::Checksum() const {
  std::vector<uint64_t> facts;
  for (const auto& [sequence, entry] : entries_)
    facts.insert(
        facts.end(),
        {sequence, static_cast<uint64_t>(entry.slot), static_cast<uint64_t>(entry.computed),
         static_cast<uint64_t>(entry.drawn), static_cast<uint64_t>(entry.last_token)});
  return XXH3_64bits(facts.data(), facts.size() * sizeof(uint64_t));
}

Status SequenceTable::Finish(SequenceId sequence) {
  const auto it = entries_.find(sequence);
  if (it == entries_.end()) return BadPlan(sequence, "finished, but not in the table");
  slot_used_[static_cast<size_t>(it->second.slot)] = false;
  for (int32_t block : it->second.blocks) block_used_[static_cast<size_t>(block)] = false;
  entries_.erase(it);
  return Status::Ok();
}

Status SequenceTable::Start(const BatchPlan& plan, const NewSequence& started) {
  const SequenceId sequence = started.sequence;
  if (sequence <= highest_)
    return BadPlan(sequence, "started, but ids rise and the last was " + std::to_string(highest_));
  RETURN_IF_ERROR(CheckSampling(started.sampling, limits_.vocab_size));
  const std::span<const TokenId> counted = Part(plan.tokens, started.counted);
  RETURN_IF_ERROR(CheckIds(sequence, counted, limits_.vocab_size));
  if (!std::is_sorted(counted.begin(), counted.end(), std::less_equal<>()))
    return BadPlan(sequence, "the ids that penalties count are not distinct and ascending");
  if (!Take(started.state_slot, slot_used_))
    return BadPlan(sequence, "slot " + std::to_string(started.state_slot) + " is none of " +
                                 std::to_string(limits_.slots) + " or has an owner");
  const std::span<const int32_t> blocks = Part(plan.blocks, started.blocks);
  for (int32_t block : blocks)
    if (!Take(block, block_used_))
      return BadPlan(sequence, "block " + std::to_string(block) + " is none of " +
                                   std::to_string(limits_.blocks) + " or has an owner");
  TableEntry entry;
  entry.slot = started.state_slot;
  entry.blocks.assign(blocks.begin(), blocks.end());
  entry.sampling = started.sampling;
  entry.history.prompt.assign(counted.begin(), counted.end());
  entries_.emplace(sequence, std::move(entry));
  highest_ = sequence;
  return Status::Ok();
}

Status SequenceTable::AddRow(const BatchPlan& plan, const PlanRow& row, StepBatch& batch) {
  const auto it = entries_.find(row.sequence);
  if (it == entries_.end()) return BadPlan(row.sequence, "has a row, but is not in the table");
  TableEntry& entry = it->second;
  if (std::find(batch.row_slot.begin(), batch.row_slot.end(), entry.slot) != batch.row_slot.end())
    return BadPlan(row.sequence, "has two rows in one step");
  RETURN_IF_ERROR(CheckRow(row, entry, limits_.block_tokens));
  const std::span<const TokenId> tokens = Part(plan.tokens, row.tokens);
  RETURN_IF_ERROR(CheckIds(row.sequence, tokens, limits_.vocab_size));
  if (batch.token_count() + RowTokens(row) > limits_.tokens_max)
    return BadPlan(row.sequence,
                   "the step has more than " + std::to_string(limits_.tokens_max) + " tokens");

  if (tokens.empty()) batch.tokens.push_back(entry.last_token);
  batch.tokens.insert(batch.tokens.end(), tokens.begin(), tokens.end());
  batch.row_first.push_back(batch.token_count());
  batch.row_position.push_back(row.position);
  batch.row_slot.push_back(entry.slot);
  batch.row_fresh.push_back(row.fresh);
  batch.row_stepwise.push_back(row.stepwise);
  entry.computed += RowTokens(row);
  const int64_t blocks = (entry.computed + limits_.block_tokens - 1) / limits_.block_tokens;
  batch.block_ids.insert(batch.block_ids.end(), entry.blocks.begin(),
                         entry.blocks.begin() + blocks);
  batch.block_first.push_back(static_cast<int32_t>(batch.block_ids.size()));
  if (row.draws > 0) batch.logit_tokens.push_back(batch.token_count() - 1);
  return Status::Ok();
}

}  // namespace levin
