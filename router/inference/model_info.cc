#include "router/inference/model_info.h"

#include <xxhash.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <cstdio>

#include "common/base/version.h"
#include "common/config/model_config.h"
#include "router/text/file_text.h"
#include "router/text/tokenizer.h"

namespace levin {
namespace {

namespace json = boost::json;

constexpr char kFile[] = "generation_config.json";
constexpr size_t kFileBytesMax = 64u << 20;

// What M1 and Text-01 are given where neither options nor files say how long an answer may become.
constexpr int64_t kDefaultTokensM1 = 40960;
constexpr int64_t kDefaultTokensText01 = 8192;

Status BadKey(std::string_view key, std::string_view expected, const json::value& got) {
  return InvalidArgument(std::string(kFile) + ": '" + std::string(key) + "' must be " +
                         std::string(expected) + ", got " + json::serialize(got));
}

// nullptr where the key is absent or null.
const json::value* Find(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

struct NumberRule {
  const char* key;
  const char* expected;
  bool (*allowed)(double);
  std::optional<double> GenerationDefaults::*field;
};

constexpr NumberRule kNumberRules[] = {
    {"temperature", "a number from 0 to 2", [](double v) { return v >= 0 && v <= 2; },
     &GenerationDefaults::temperature},
    {"top_p", "a number above 0 and at most 1", [](double v) { return v > 0 && v <= 1; },
     &GenerationDefaults::top_p},
    {"min_p", "a number from 0 to 1", [](double v) { return v >= 0 && v <= 1; },
     &GenerationDefaults::min_p},
    {"repetition_penalty", "a number from 1e-6 to 1e6",
     [](double v) { return v >= 1e-6 && v <= 1e6; }, &GenerationDefaults::repetition_penalty},
};

Status ReadNumber(const json::object& object, const NumberRule& rule, GenerationDefaults& out) {
  const json::value* value = Find(object, rule.key);
  if (value == nullptr) return {};
  if (!value->is_number() || !rule.allowed(value->to_number<double>())) {
    return BadKey(rule.key, rule.expected, *value);
  }
  out.*rule.field = value->to_number<double>();
  return {};
}

Status ReadInteger(const json::object& object, std::string_view key, int64_t least,
                   std::optional<int64_t>& out) {
  const json::value* value = Find(object, key);
  if (value == nullptr) return {};
  if (!value->is_int64() || value->get_int64() < least) {
    return BadKey(key, "an integer of at least " + std::to_string(least), *value);
  }
  out = value->get_int64();
  return {};
}

// One id or a list of them.
Status ReadEndIds(const json::object& object, std::vector<TokenId>& out) {
  const json::value* value = Find(object, "eos_token_id");
  if (value == nullptr) return {};
  const json::array one = {*value};
  for (const json::value& id : value->is_array() ? value->get_array() : one) {
    if (!id.is_int64() || id.get_int64() < 0 || id.get_int64() > INT32_MAX) {
      return BadKey("eos_token_id", "a token id or a list of them", *value);
    }
    out.push_back(static_cast<TokenId>(id.get_int64()));
  }
  return {};
}

std::string LastComponent(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  return folder.filename().string();
}

// The names of api.md 11.1: what was asked for, else the folder's name and the path as given.
std::vector<std::string> ServedNames(const RouterOptions& options) {
  if (!options.served_model_names.empty()) return options.served_model_names;
  std::vector<std::string> names = {LastComponent(options.model)};
  if (names.front() != options.model) names.push_back(options.model);
  return names;
}

int64_t DefaultMaxTokens(const RouterOptions& options, const GenerationDefaults& defaults,
                         ModelConfig::Family family) {
  if (options.default_max_tokens > 0) return options.default_max_tokens;
  if (defaults.max_new_tokens) return *defaults.max_new_tokens;
  return family == ModelConfig::Family::kM1 ? kDefaultTokensM1 : kDefaultTokensText01;
}

Result<bool> ParsesReasoning(const std::string& option, ModelConfig::Family family) {
  if (option == "none") return false;
  if (option == "minimax_m1") return true;
  if (option == "auto") return family == ModelConfig::Family::kM1;
  return Error(
      InvalidArgument("--reasoning-parser must be none, minimax_m1 or auto, got '" + option + "'"));
}

// config.json and, where there is one, the index that names every weight file: a stand-in for the
// weights themselves, which the router never reads.
uint64_t WeightsHash(const std::filesystem::path& model_dir) {
  uint64_t hash = 0;
  for (const char* name : {"config.json", "model.safetensors.index.json"}) {
    const auto text = ReadFileText(model_dir / name, kFileBytesMax);
    if (text) hash = XXH3_64bits_withSeed(text->data(), text->size(), hash);
  }
  return hash;
}

}  // namespace

bool ModelInfo::Serves(std::string_view name) const {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Result<GenerationDefaults> ParseGenerationDefaults(std::string_view text) {
  boost::system::error_code error;
  const json::value root = json::parse(text, error);
  if (error) return Error(InvalidArgument(std::string(kFile) + ": not JSON: " + error.message()));
  const json::object* object = root.if_object();
  if (object == nullptr) return Error(InvalidArgument(std::string(kFile) + ": not a JSON object"));

  GenerationDefaults out;
  for (const NumberRule& rule : kNumberRules) RETURN_ERROR_IF(ReadNumber(*object, rule, out));
  RETURN_ERROR_IF(ReadInteger(*object, "top_k", -1, out.top_k));
  RETURN_ERROR_IF(ReadInteger(*object, "max_new_tokens", 1, out.max_new_tokens));
  RETURN_ERROR_IF(ReadEndIds(*object, out.eos_ids));
  return out;
}

Result<GenerationDefaults> LoadGenerationDefaults(const std::filesystem::path& model_dir) {
  std::error_code ignored;
  if (!std::filesystem::exists(model_dir / kFile, ignored)) return GenerationDefaults{};
  ASSIGN_OR_RETURN(const std::string text, ReadFileText(model_dir / kFile, kFileBytesMax));
  return ParseGenerationDefaults(text);
}

Result<ModelInfo> LoadModelInfo(const RouterOptions& options, const Tokenizer& tokenizer,
                                int64_t now_unix_s) {
  ASSIGN_OR_RETURN(const ModelConfig config, LoadModelConfig(options.model));
  ASSIGN_OR_RETURN(GenerationDefaults defaults, LoadGenerationDefaults(options.model));
  if (!tokenizer.eos_token()) {
    return Error(InvalidArgument(
        "tokenizer_config.json names no eos_token that tokenizer.json has: no reply could end"));
  }

  ModelInfo info;
  info.names = ServedNames(options);
  info.architecture = config.architecture;
  info.family = config.family == ModelConfig::Family::kM1 ? "M1" : "TEXT_01";
  info.dtype = options.dtype;
  info.quantization = options.quantization;
  info.weights_hash = WeightsHash(options.model);
  info.created_unix_s = now_unix_s;
  ASSIGN_OR_RETURN(info.parse_reasoning, ParsesReasoning(options.reasoning_parser, config.family));
  info.tool_family =
      config.family == ModelConfig::Family::kM1 ? ToolFamily::kM1 : ToolFamily::kText01;
  info.function_call = tokenizer.FindAdded("<function_call>");
  info.max_model_len = options.max_model_len;
  info.max_output_tokens = options.max_output_tokens;
  info.default_max_tokens = DefaultMaxTokens(options, defaults, config.family);
  info.max_logprobs = options.max_logprobs;
  info.vocab_size = config.vocab;
  info.eos = *tokenizer.eos_token();
  for (TokenId id : defaults.eos_ids) {
    if (id >= config.vocab) {
      return Error(InvalidArgument(std::string(kFile) + ": eos_token_id " + std::to_string(id) +
                                   " is not below the vocabulary's " +
                                   std::to_string(config.vocab)));
    }
    if (id != info.eos) info.extra_stop_ids.push_back(id);
  }
  info.defaults = std::move(defaults);
  return info;
}

std::string FingerprintOf(const ModelInfo& info, int32_t ranks, uint64_t model_digest) {
  const std::string text = std::string(kVersion) + '\n' + info.dtype + '\n' + info.quantization +
                           '\n' + std::to_string(info.weights_hash) + '\n' + std::to_string(ranks) +
                           '\n' + std::to_string(model_digest);
  char out[24];
  std::snprintf(out, sizeof out, "fp_%016llx",
                static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  return out;
}

int64_t WindowOf(const ModelInfo& info, int64_t group_max_model_len) {
  if (info.max_model_len <= 0) return group_max_model_len;
  if (group_max_model_len <= 0) return info.max_model_len;
  return std::min(info.max_model_len, group_max_model_len);
}

}  // namespace levin
