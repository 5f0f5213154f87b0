// One reply as a stream of events: what HTTP and gRPC write out. A whole reply is the joined
// stream.
//
//   Started? FirstToken? (Delta | ToolStart | ToolArgs)* ChoiceFinished Completed
//   any prefix of that, then Failed
//
// Each drawn token is in exactly one event's `tokens`, in order, beside the first text that was
// shown at or after it; so `completion_tokens` is the number of them so far.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "common/base/types.h"
#include "common/inference/generation.h"

namespace levin {

// The leader reserved memory for it; at most once, may be missing when the reply ends at once.
struct StartedEvent {
  int64_t cached_tokens = 0;
};

// The first token exists, whether or not its text can be shown yet.
struct FirstTokenEvent {};

enum class TextKind : uint8_t { kContent, kReasoning };

struct DeltaEvent {
  TextKind kind = TextKind::kContent;
  std::string text;  // whole characters; not empty
  std::vector<SampledToken> tokens;
};

struct ToolStartEvent {
  int32_t index = 0;  // dense from 0
  std::string id, name;
  std::vector<SampledToken> tokens;
};

struct ToolArgsEvent {
  int32_t index = 0;
  std::string fragment;  // of the JSON text of the arguments
  std::vector<SampledToken> tokens;
};

enum class ReplyFinish : uint8_t { kStop, kLength, kToolCalls, kCancelled };

struct ChoiceFinishedEvent {
  ReplyFinish reason = ReplyFinish::kStop;
  std::optional<std::string> stop_string = {};  // at most one of the two; neither for the end token
  std::optional<TokenId> stop_token = {};
  bool content_is_null = false;           // chat: nothing but tool calls or cut reasoning came out
  std::vector<SampledToken> tokens = {};  // those without text behind the last text
};

struct ReplyUsage {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t completion_tokens = 0;  // the end token and hidden ones included
  int64_t reasoning_tokens = 0;
};

struct ReplyTimings {
  int64_t queue_us = 0;
  int64_t prefill_us = 0;
  int64_t first_token_us = 0;  // from submit, by the router's clock; 0: no token
  int64_t decode_us = 0;
};

struct CompletedEvent {
  ReplyUsage usage;
  ReplyTimings timings;
};

struct FailedEvent {
  Status status;
};

using ReplyEvent = std::variant<StartedEvent, FirstTokenEvent, DeltaEvent, ToolStartEvent,
                                ToolArgsEvent, ChoiceFinishedEvent, CompletedEvent, FailedEvent>;

// Receives the events of one reply, from one thread at a time (a gRPC thread): must not block.
// Nothing comes after Completed or Failed; destroyed after that, on any thread.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  // What became known at once, in order: never empty.
  virtual void OnEvents(std::vector<ReplyEvent> events) = 0;
};

}  // namespace levin
