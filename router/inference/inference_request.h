// What a client asked for, in one form for HTTP and gRPC: ids in, every other field as sent (wide
// types, unset where absent), so that one place can check it (request_check.h). Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/types.h"
#include "router/text/reasoning_parser.h"

namespace levin {

// What is done with the text on its way out.
struct ReplyOptions {
  bool chat = false;         // chat replies run through the parsers, completions never do
  bool parse_tools = false;  // the request has tools and tool_choice is not "none"
  bool parallel_tool_calls = true;
  bool include_reasoning = true;
  ThinkStart think_start = ThinkStart::kNone;  // where the prompt ends
};

struct InferenceRequest {
  std::vector<TokenId> prompt = {};

  // Names of fields in error messages: the client's own.
  std::string prompt_param = "prompt";
  std::string max_tokens_param = "max_tokens";
  std::string logprobs_param = "logprobs";

  std::optional<double> temperature = {}, top_p = {}, min_p = {};
  std::optional<double> frequency_penalty = {}, presence_penalty = {}, repetition_penalty = {};
  std::optional<int64_t> top_k = {}, seed = {}, n = {};
  std::vector<std::pair<int64_t, double>> logit_bias = {};
  std::optional<std::vector<int64_t>> allowed_token_ids = {};
  std::vector<std::string> bad_words = {};

  std::optional<int64_t> max_tokens = {}, min_tokens = {};
  int64_t max_tokens_least = 1;                    // completions accept 0: prefill only
  std::optional<int64_t> default_max_tokens = {};  // in place of the model's
  std::vector<std::string> stop = {};
  std::vector<int64_t> stop_token_ids = {};
  bool ignore_eos = false;
  bool include_stop = false;
  bool skip_special_tokens = true;

  std::optional<int64_t> logprobs = {};  // k >= 0: the drawn token's and the k best
  std::optional<int64_t> truncate_prompt_tokens = {};
  int64_t timeout_ms = 0;  // 0: none

  ReplyOptions reply = {};
};

}  // namespace levin
