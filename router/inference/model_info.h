// What a router knows of the model that it serves, apart from tokenizer and template. Plain data,
// constant after the start; any thread may read it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/types.h"
#include "common/config/options.h"
#include "router/text/tool_parser.h"

namespace levin {

class Tokenizer;

// generation_config.json: defaults for what a request leaves open. Nothing else in it is used.
struct GenerationDefaults {
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::optional<int64_t> top_k;
  std::optional<int64_t> max_new_tokens;
  std::vector<TokenId> eos_ids;  // of eos_token_id: the end token or extra stop ids

  bool operator==(const GenerationDefaults&) const = default;
};

// A folder without the file has no defaults. kInvalidArgument names a key that it says wrong.
Result<GenerationDefaults> LoadGenerationDefaults(const std::filesystem::path& model_dir);
Result<GenerationDefaults> ParseGenerationDefaults(std::string_view json);

struct ModelInfo {
  std::vector<std::string> names;  // served names; the first stands in every reply
  std::string architecture;        // as config.json names it
  std::string family;              // "M1" or "TEXT_01"
  std::string dtype, quantization;
  uint64_t weights_hash = 0;  // of config.json and the list of weight files
  int64_t created_unix_s = 0;
  int64_t max_model_len = 0;            // by option; 0: the group's (see WindowOf)
  int64_t max_output_tokens = 0;        // cap of an explicit max_tokens; 0: none
  int64_t default_max_tokens = 0;       // where a request names none: min(this, what is left)
  int32_t max_logprobs = 20;            // -1: the vocabulary
  int32_t vocab_size = 0;               // rows of the head; ids of requests lie below it
  TokenId eos = 0;                      // the end token
  std::vector<TokenId> extra_stop_ids;  // of generation_config.json, without eos
  GenerationDefaults defaults;
  bool parse_reasoning = false;  // the think block of chat replies goes into its own field
  ToolFamily tool_family = ToolFamily::kNone;
  std::optional<TokenId> function_call;  // the id of <function_call>, where there is one

  bool Serves(std::string_view name) const;
};

// From options and the model folder (config.json, generation_config.json); the end token comes from
// the tokenizer. `now_unix_s` becomes `created`.
Result<ModelInfo> LoadModelInfo(const RouterOptions& options, const Tokenizer& tokenizer,
                                int64_t now_unix_s);

// "fp_" and 16 hex digits: another one whenever equal seeds may give other tokens (server version,
// weights, number formats, parallel layout).
std::string FingerprintOf(const ModelInfo& info, int32_t ranks, uint64_t model_digest);

// Tokens of prompt and output together that a request may have: the option's and the group's limit,
// whichever is smaller; 0: unknown yet (no group was seen and no option given).
int64_t WindowOf(const ModelInfo& info, int64_t group_max_model_len);

}  // namespace levin
