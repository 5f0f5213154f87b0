// What the leader remembers of one router incarnation: which ordinals it knows, how each stands,
// and what the router said is over. Gives the protocol its idempotency (protocol.md 7). Pure; one
// thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/base/types.h"
#include "common/inference/generation.h"
#include "worker/engine/router_messages.h"

namespace levin {

class Ledger final {
 public:
  static constexpr size_t kEarlyCancelsMax = 4096;

  explicit Ledger(size_t records_max, Duration lease) : records_max_(records_max), lease_(lease) {}

  using Answer = std::variant<AcceptedEvent, FinishedEvent, ErrorEvent>;
  struct Opened {
    // Empty: new, to be run. Else the answer to a Submit that must not run: a repetition gets the
    // newest answer for it, others an error.
    std::optional<Answer> answer;
    bool cancelled = false;  // its Cancel came first
  };
  Opened Open(const Generation& generation, TimePoint now);

  // The newest answer for an open ordinal; Finished and Error end it.
  void SetAnswer(uint64_t ordinal, Answer answer);
  void SetFreed(uint64_t ordinal);

  // True when it lives and is to be cancelled. An ordinal not seen yet is remembered for one lease.
  bool Cancel(const CancelCommand& command, TimePoint now);

  // Takes the level over; returns ordinals that live here and not there. An acknowledgement is due.
  std::vector<uint64_t> FinishedSet(FinishedSetCommand command);

  // The acknowledgement, if one is due: after a FinishedSet, and after each Freed that it waits
  // for.
  std::optional<FreedAckEvent> TakeFreedAck(uint64_t step);

  std::vector<uint64_t> Live() const;          // neither finished nor failed
  bool all_freed() const;                      // no memory is held
  uint32_t AttemptOf(uint64_t ordinal) const;  // 0: unknown
  size_t records() const { return records_.size(); }

 private:
  struct Record {
    std::string request_id;
    uint32_t attempt = 0;
    uint64_t content_hash = 0;
    Answer answer;
    bool over = false;
    bool freed = false;
  };
  struct EarlyCancel {
    uint64_t ordinal = 0;
    uint32_t attempt = 0;
    TimePoint when;
  };

  std::optional<Answer> AnswerKnown(const Generation& generation) const;
  bool Covered(uint64_t ordinal) const;
  bool TakeEarlyCancel(const Generation& generation, TimePoint now);
  void Forget(uint64_t ordinal);

  const size_t records_max_;
  const Duration lease_;
  std::map<uint64_t, Record> records_;
  std::unordered_map<std::string, uint64_t> by_request_;  // the highest attempt's ordinal
  std::deque<EarlyCancel> early_cancels_;
  uint64_t highest_seen_ = 0;
  FinishedSetCommand finished_;
  bool ack_due_ = false;
};

}  // namespace levin
