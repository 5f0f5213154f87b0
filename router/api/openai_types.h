// Requests of the OpenAI-compatible API as plain structs: types are right and fields are known to
// be supported; ranges are checked by router/inference/request_check.h.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/base/types.h"
#include "router/inference/inference_request.h"

namespace levin {

// How the reply is written, for both endpoints.
struct ReplyShape {
  bool stream = false;
  bool include_usage = false;           // one chunk with the usage at the end of a stream
  bool continuous_usage_stats = false;  // usage on every chunk
  bool return_token_ids = false;
  bool return_tokens_as_token_ids = false;  // token strings become "token_id:N"
  bool logprobs = false;
  bool echo = false;  // completions: the text begins with the prompt
};

struct ChatRequest {
  std::string model;       // empty: the served one
  std::string request_id;  // empty: generated
  ReplyShape shape;
  InferenceRequest inference;  // without prompt
};

using CompletionPrompt = std::variant<std::string, std::vector<TokenId>>;

struct CompletionRequest {
  std::string model;
  std::string request_id;
  ReplyShape shape;
  std::vector<CompletionPrompt> prompts;  // at least one
  InferenceRequest inference;             // without prompt
};

struct TokenizeRequest {
  std::string model;
  bool chat = false;  // messages instead of a prompt; the body itself is what is rendered
  std::string prompt;
  bool return_token_strs = false;
};

struct DetokenizeRequest {
  std::string model;
  std::vector<int64_t> tokens;
};

}  // namespace levin
