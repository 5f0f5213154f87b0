// The one place of ranges, contradictions and defaults: InferenceRequest -> Generation and the
// rules for its text. Messages state the allowed range and the value that came; Status::param names
// the field as InferenceRequest does. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/inference/generation.h"
#include "router/inference/inference_request.h"
#include "router/inference/model_info.h"
#include "router/text/reply_parser.h"

namespace levin {

class Tokenizer;

// A request that is known to be good.
struct PreparedRequest {
  Generation generation;  // ordinal, request_id and attempt are the engine client's
  std::vector<std::string> stop;
  std::optional<TokenId> eos;  // ends the reply without a stop_reason; unset with ignore_eos
  bool include_stop = false;
  bool skip_special_tokens = true;
  std::optional<ReplyParserOptions> parser;  // chat: how text becomes content, reasoning, calls

  int64_t prompt_tokens() const { return static_cast<int64_t>(generation.prompt.size()); }
  int64_t max_tokens() const { return generation.max_new_tokens; }
};

struct RequestLimits {
  int64_t window = 0;          // WindowOf, > 0
  int64_t max_new_tokens = 0;  // the group's cap of one output; 0: none
  uint64_t random_seed = 0;    // used where the request has no seed
  int64_t now_unix_ms = 0;
  int64_t timeout_ms = 0;  // the server's own; 0: none. The earlier of both counts
};

// Before a prompt's text of `bytes` bytes is encoded, which takes long for a long one:
// CONTEXT_LENGTH_EXCEEDED if it has more tokens than `window` (0: unknown, anything passes) however
// it is cut. One that is to be truncated always passes.
Status CheckTextFits(const InferenceRequest& request, size_t bytes, const Tokenizer& tokenizer,
                     int64_t window);

// Errors, all kInvalidArgument: INVALID_FIELD (range, contradiction), CONTEXT_LENGTH_EXCEEDED,
// UNSUPPORTED_PARAMETER (n above 1).
Result<PreparedRequest> PrepareRequest(InferenceRequest request, const ModelInfo& model,
                                       const Tokenizer& tokenizer, const RequestLimits& limits);

}  // namespace levin
