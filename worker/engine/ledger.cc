#include "worker/engine/ledger.h"

#include <xxhash.h>

#include <algorithm>
#include <string>
#include <utility>

#include "worker/plan/plan_codec.h"

namespace levin {
namespace {

constexpr int64_t kQueueFullRetryMs = 1000;

// Of all that decides what is generated; the deadline may change from one Submit to the next.
uint64_t ContentHash(const Generation& generation) {
  BatchPlan form;  // the plan's bytes have one form per value
  form.step = static_cast<uint64_t>(generation.max_new_tokens);
  form.started.resize(1);
  form.started[0].sampling = generation.sampling;
  const std::string bytes = EncodePlan(form);
  const std::vector<TokenId>& prompt = generation.prompt;
  return XXH3_64bits_withSeed(prompt.data(), prompt.size() * sizeof(TokenId),
                              XXH3_64bits(bytes.data(), bytes.size()));
}

ErrorEvent ErrorFor(const Generation& generation, Status status) {
  return {
      .ordinal = generation.ordinal, .attempt = generation.attempt, .status = std::move(status)};
}

Status Exists(uint64_t ordinal) {
  return {Code::kAlreadyExists, "GENERATION_EXISTS",
          "ordinal " + std::to_string(ordinal) + " runs or ran this request id"};
}

}  // namespace

Ledger::Opened Ledger::Open(const Generation& generation, TimePoint now) {
  if (std::optional<Answer> known = AnswerKnown(generation)) return {.answer = std::move(known)};
  if (Covered(generation.ordinal))
    return {.answer = ErrorFor(generation, Status(Code::kCancelled, "CANCELLED",
                                                  "the router named this ordinal finished"))};
  if (records_.size() >= records_max_)
    return {.answer = ErrorFor(generation,
                               Status(Code::kResourceExhausted, "QUEUE_FULL",
                                      std::to_string(records_.size()) +
                                          " generations are remembered, waiting for a FinishedSet")
                                   .WithRetryAfterMs(kQueueFullRetryMs))};
  Record record;
  record.request_id = generation.request_id;
  record.attempt = generation.attempt;
  record.content_hash = ContentHash(generation);
  record.answer = AcceptedEvent{.ordinal = generation.ordinal, .attempt = generation.attempt};
  records_.emplace(generation.ordinal, std::move(record));
  by_request_[generation.request_id] = generation.ordinal;
  highest_seen_ = std::max(highest_seen_, generation.ordinal);
  return {.answer = std::nullopt, .cancelled = TakeEarlyCancel(generation, now)};
}

std::optional<Ledger::Answer> Ledger::AnswerKnown(const Generation& generation) const {
  if (const auto it = records_.find(generation.ordinal); it != records_.end()) {
    const Record& record = it->second;
    const bool same = record.request_id == generation.request_id &&
                      record.attempt == generation.attempt &&
                      record.content_hash == ContentHash(generation);
    if (same) return record.answer;
    return ErrorFor(generation, Exists(generation.ordinal));
  }
  const auto by_request = by_request_.find(generation.request_id);
  if (by_request == by_request_.end()) return std::nullopt;
  const Record& record = records_.at(by_request->second);
  if (generation.attempt > record.attempt) return std::nullopt;
  if (generation.attempt < record.attempt)
    return ErrorFor(generation, Status(Code::kAborted, "STALE_ATTEMPT",
                                       "attempt " + std::to_string(generation.attempt) +
                                           ", known is " + std::to_string(record.attempt)));
  // One that was refused never ran: it may come again under a new ordinal.
  if (std::holds_alternative<ErrorEvent>(record.answer) && record.freed) return std::nullopt;
  return ErrorFor(generation, Exists(by_request->second));
}

void Ledger::SetAnswer(uint64_t ordinal, Answer answer) {
  const auto it = records_.find(ordinal);
  if (it == records_.end()) return;
  it->second.over |= !std::holds_alternative<AcceptedEvent>(answer);
  it->second.answer = std::move(answer);
}

void Ledger::SetFreed(uint64_t ordinal) {
  const auto it = records_.find(ordinal);
  if (it == records_.end()) return;
  it->second.freed = true;
  if (ordinal <= finished_.watermark) ack_due_ = true;
  if (Covered(ordinal)) Forget(ordinal);
}

bool Ledger::Cancel(const CancelCommand& command, TimePoint now) {
  if (const auto it = records_.find(command.ordinal); it != records_.end())
    return it->second.attempt == command.attempt && !it->second.over;
  if (command.ordinal <= highest_seen_ || Covered(command.ordinal)) return false;
  if (early_cancels_.size() >= kEarlyCancelsMax) early_cancels_.pop_front();
  early_cancels_.push_back({command.ordinal, command.attempt, now});
  return false;
}

bool Ledger::TakeEarlyCancel(const Generation& generation, TimePoint now) {
  bool cancelled = false;
  std::erase_if(early_cancels_, [&](const EarlyCancel& early) {
    if (now - early.when > lease_) return true;
    if (early.ordinal != generation.ordinal) return false;
    cancelled |= early.attempt == generation.attempt;
    return true;
  });
  return cancelled;
}

std::vector<uint64_t> Ledger::FinishedSet(FinishedSetCommand command) {
  ack_due_ = true;
  if (command.watermark < finished_.watermark) return {};  // an older level that came late
  std::sort(command.live.begin(), command.live.end());
  finished_ = std::move(command);
  std::vector<uint64_t> zombies, done;
  for (const auto& [ordinal, record] : records_) {
    if (!Covered(ordinal)) continue;
    if (!record.over) zombies.push_back(ordinal);
    if (record.freed) done.push_back(ordinal);
  }
  for (uint64_t ordinal : done) Forget(ordinal);
  std::erase_if(early_cancels_, [&](const EarlyCancel& early) { return Covered(early.ordinal); });
  return zombies;
}

std::optional<FreedAckEvent> Ledger::TakeFreedAck(uint64_t step) {
  if (!std::exchange(ack_due_, false)) return std::nullopt;
  FreedAckEvent ack{.watermark = finished_.watermark, .unfreed = {}, .step = step};
  for (const auto& [ordinal, record] : records_)
    if (ordinal <= finished_.watermark && !record.freed) ack.unfreed.push_back(ordinal);
  return ack;
}

std::vector<uint64_t> Ledger::Live() const {
  std::vector<uint64_t> live;
  for (const auto& [ordinal, record] : records_)
    if (!record.over) live.push_back(ordinal);
  return live;
}

bool Ledger::all_freed() const {
  return std::all_of(records_.begin(), records_.end(),
                     [](const auto& entry) { return entry.second.freed; });
}

uint32_t Ledger::AttemptOf(uint64_t ordinal) const {
  const auto it = records_.find(ordinal);
  return it == records_.end() ? 0 : it->second.attempt;
}

bool Ledger::Covered(uint64_t ordinal) const {
  return ordinal <= finished_.watermark &&
         !std::binary_search(finished_.live.begin(), finished_.live.end(), ordinal);
}

void Ledger::Forget(uint64_t ordinal) {
  const auto it = records_.find(ordinal);
  const auto by_request = by_request_.find(it->second.request_id);
  if (by_request != by_request_.end() && by_request->second == ordinal)
    by_request_.erase(by_request);
  records_.erase(it);
}

}  // namespace levin
