// The door to a worker group: one submit, one stream of tokens, one end. Implemented over gRPC
// (router/rpc) and by a fake in tests.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/base/status.h"
#include "common/base/types.h"
#include "common/inference/generation.h"

namespace levin {

// Receives one generation. Calls come in order, from one thread at a time (a gRPC thread): they
// must not block. Destroyed after OnDone.
class TokenSink {
 public:
  virtual ~TokenSink() = default;
  // The leader reserved its memory and will run it; at most once, before the first token.
  virtual void OnAdmitted(int64_t cached_tokens) = 0;
  // `first_index`: of tokens[0] in the output; dense, rising, no token twice.
  virtual void OnTokens(int64_t first_index, std::span<const SampledToken> tokens) = 0;
  // Exactly once, also after a cancel. OK with a reason (kStop, kLength, kCancelled), or the error.
  virtual void OnDone(Status status, FinishReason reason, const Usage& usage) = 0;
};

enum class CancelReason { kClientGone, kStopString, kDeadline, kAbort, kShutdown };

// A generation on its way. Dropping it cancels (kClientGone) if it has not ended. Any thread.
class Call {
 public:
  virtual ~Call() = default;
  virtual void Cancel(CancelReason reason) = 0;
};

// What a group said at the Handshake; constant during an epoch.
struct GroupInfo {
  std::string group_id;
  uint64_t epoch = 0;
  int64_t max_model_len = 0;
  int64_t max_new_tokens = 0;
  int64_t block_tokens = 0;
  int32_t max_num_seqs = 0;
  int32_t vocab_size = 0;
  int32_t ranks = 0;
  uint64_t model_digest = 0;
};

class EngineClient {
 public:
  virtual ~EngineClient() = default;
  // Never blocks. Ordinal, request id and attempt are assigned inside. A refusal comes back as the
  // error here (nothing was sent, the sink is dropped uncalled) or through OnDone.
  virtual Result<std::unique_ptr<Call>> Submit(Generation generation,
                                               std::unique_ptr<TokenSink> sink) = 0;
  virtual Capacity capacity() const = 0;  // the latest known
  virtual std::shared_ptr<const GroupInfo> group()
      const = 0;  // null while no healthy group is known
};

}  // namespace levin
