#include "common/config/model_config.h"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "common/config/json_fields.h"
#include "common/config/regular_file.h"
#include "common/config/strict_json.h"

namespace levin {
namespace {

namespace json = boost::json;

constexpr int64_t kConfigBytesMax = int64_t{4} << 20;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Upper limits far above every real model; products of any of them stay below 2^63.
constexpr int64_t kLayersMax = 1 << 12;
constexpr int64_t kHiddenMax = 1 << 20;
constexpr int64_t kHeadsMax = 1 << 14;
constexpr int64_t kHeadDimMax = 1 << 12;
constexpr int64_t kExpertsMax = 1 << 14;
constexpr int64_t kExpertWidthMax = 1 << 22;
constexpr int64_t kVocabMax = 1 << 24;
constexpr int64_t kPositionsMax = int64_t{1} << 40;

struct Alias {
  std::string_view architecture;
  std::string_view model_types[2];  // lower case
  ModelConfig::Family family;
};
constexpr Alias kAliases[] = {
    {"MiniMaxText01ForCausalLM",
     {"minimax_text_01", "minimaxtext01"},
     ModelConfig::Family::kText01},
    {"MiniMaxM1ForCausalLM", {"minimax_m1", "minimaxm1"}, ModelConfig::Family::kM1},
    {"MiniMaxForCausalLM", {"minimax", "minimax"}, ModelConfig::Family::kNative},
};
constexpr std::string_view kKnownArchitectures =
    "one of MiniMaxText01ForCausalLM, MiniMaxM1ForCausalLM, MiniMaxForCausalLM";

// Things other networks have and this one has not: present with another value, they change the
// numbers, so they are refused instead of overlooked.
constexpr std::string_view kMustBeOff[] = {
    "attention_bias",
    "mlp_bias",
    "qkv_bias",
    "use_bias",
    "use_qk_norm",
    "qk_norm",
    "attn_logit_softcapping",
    "final_logit_softcapping",
    "use_routing_bias",
    "num_mtp_modules",
};

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

Status ReadArchitecture(const JsonFields& fields, ModelConfig& config) {
  if (fields.Find("text_config") != nullptr) {
    return InvalidArgument(
        "key 'text_config' is present: this is a vision-language model (MiniMax-VL-01), which is "
        "not served; expected " +
        std::string(kKnownArchitectures));
  }
  if (const json::value* list = fields.Find("architectures")) {
    const bool named =
        list->is_array() && !list->get_array().empty() && list->get_array().front().is_string();
    if (!named) return WrongValue("architectures", *list, "a list of one name");
    config.architecture = std::string(list->get_array().front().get_string());
    for (const Alias& alias : kAliases) {
      if (alias.architecture != config.architecture) continue;
      config.family = alias.family;
      return Status::Ok();
    }
    return WrongValue("architectures", *list, kKnownArchitectures);
  }
  ASSIGN_OR_RETURN_STATUS(const std::optional<std::string> type, fields.Text("model_type"));
  if (!type) return MissingKey("architectures", kKnownArchitectures);
  for (const Alias& alias : kAliases) {
    for (std::string_view known : alias.model_types) {
      if (known != Lower(*type)) continue;
      config.architecture = alias.architecture;
      config.family = alias.family;
      return Status::Ok();
    }
  }
  return WrongValue("model_type", *fields.Find("model_type"),
                    "minimax_text_01, minimax_m1 or minimax (or 'architectures': " +
                        std::string(kKnownArchitectures) + ")");
}

Status ReadSizes(const JsonFields& fields, ModelConfig& config) {
  struct Size {
    std::string_view key;
    int32_t& value;
    int64_t max;
  };
  const Size sizes[] = {
      {"num_hidden_layers", config.layers, kLayersMax},
      {"hidden_size", config.hidden, kHiddenMax},
      {"num_attention_heads", config.heads, kHeadsMax},
      {"num_key_value_heads", config.kv_heads, kHeadsMax},
      {"head_dim", config.head_dim, kHeadDimMax},
      {"intermediate_size", config.expert_width, kExpertWidthMax},
      {"vocab_size", config.vocab, kVocabMax},
  };
  for (const Size& size : sizes) {
    ASSIGN_OR_RETURN_STATUS(const int64_t value, fields.NeedInteger(size.key, 1, size.max));
    size.value = static_cast<int32_t>(value);
  }
  if (config.heads % config.kv_heads != 0) {
    return InvalidArgument("key 'num_key_value_heads' is " + std::to_string(config.kv_heads) +
                           ", expected a divisor of num_attention_heads " +
                           std::to_string(config.heads));
  }
  ASSIGN_OR_RETURN_STATUS(config.max_positions,
                          fields.NeedInteger("max_position_embeddings", 1, kPositionsMax));
  return Status::Ok();
}

// A list of 0 and 1, or of the native words.
Result<std::vector<LayerKind>> ParseKinds(std::string_view key, const json::value& value) {
  const bool words = key == "layer_types";
  const std::string_view expected = words ? "a list of linear_attention and full_attention"
                                          : "a list of 0 (lightning) and 1 (softmax)";
  if (!value.is_array()) return Error(WrongValue(key, value, expected));
  std::vector<LayerKind> kinds;
  for (const json::value& entry : value.get_array()) {
    const bool lightning = words ? entry == "linear_attention" : entry == 0;
    const bool softmax = words ? entry == "full_attention" : entry == 1;
    if (!lightning && !softmax) {
      return Error(WrongValue(std::string(key) + "[" + std::to_string(kinds.size()) + "]", entry,
                              words ? "linear_attention or full_attention" : "0 or 1"));
    }
    kinds.push_back(lightning ? LayerKind::kLightning : LayerKind::kSoftmax);
  }
  return kinds;
}

Status ReadLayerKinds(const JsonFields& fields, ModelConfig& config) {
  std::string_view first;
  for (std::string_view key : {"attn_type_list", "decoder_attention_types", "layer_types"}) {
    const json::value* value = fields.Find(key);
    if (value == nullptr) continue;
    ASSIGN_OR_RETURN_STATUS(std::vector<LayerKind> kinds, ParseKinds(key, *value));
    if (!first.empty() && kinds != config.layer_kinds) {
      return WrongValue(key, *value, "the same layer kinds as '" + std::string(first) + "'");
    }
    if (first.empty()) first = key;
    config.layer_kinds = std::move(kinds);
  }
  if (first.empty()) {
    return MissingKey(
        "attn_type_list",
        "the kind of every layer here, in 'decoder_attention_types' or 'layer_types'");
  }
  if (config.layer_kinds.size() != static_cast<size_t>(config.layers)) {
    return InvalidArgument(
        "key '" + std::string(first) + "' has " + std::to_string(config.layer_kinds.size()) +
        " entries, expected num_hidden_layers = " + std::to_string(config.layers));
  }
  return Status::Ok();
}

// Scaling of positions in any form but "none" would be a different network.
Status RefuseRopeScaling(std::string_view name, const json::value& value,
                         std::initializer_list<std::string_view> known) {
  if (!value.is_object()) return WrongValue(name, value, "an object");
  for (const auto& [key, entry] : value.get_object()) {
    const std::string full = std::string(name) + "." + std::string(key);
    if (key == "rope_type" || key == "type") {
      if (entry != "default") return WrongValue(full, entry, "\"default\"");
      continue;
    }
    if (std::find(known.begin(), known.end(), std::string_view(key)) == known.end()) {
      return WrongValue(full, entry, "no such key: positions are not scaled");
    }
  }
  return Status::Ok();
}

// A factor such as 0.6 of 80 is whole but for the rounding of the product.
double WholeIfClose(double value) {
  const double whole = std::round(value);
  return std::abs(value - whole) < 1e-9 * whole ? whole : value;
}

Status ReadRope(const JsonFields& fields, ModelConfig& config) {
  if (const json::value* scaling = fields.Find("rope_scaling")) {
    RETURN_IF_ERROR(RefuseRopeScaling("rope_scaling", *scaling, {}));
  }
  const json::object none;
  JsonFields nested(none, "rope_parameters.");
  if (const json::value* rope = fields.Find("rope_parameters")) {
    RETURN_IF_ERROR(
        RefuseRopeScaling("rope_parameters", *rope, {"rope_theta", "partial_rotary_factor"}));
    nested = JsonFields(rope->get_object(), "rope_parameters.");
  }
  Spellings theta;
  Spellings rotary;
  for (const JsonFields& from : {fields, nested}) {
    ASSIGN_OR_RETURN_STATUS(const std::optional<double> base,
                            from.Number("rope_theta", 0, kInfinity));
    theta.Add(from.FullName("rope_theta"), base);
  }
  ASSIGN_OR_RETURN_STATUS(const std::optional<int64_t> dim,
                          fields.Integer("rotary_dim", 2, config.head_dim));
  rotary.Add("rotary_dim", dim ? std::optional<double>(static_cast<double>(*dim)) : std::nullopt);
  for (const JsonFields& from : {fields, nested}) {
    ASSIGN_OR_RETURN_STATUS(const std::optional<double> factor,
                            from.Number("partial_rotary_factor", 0, 1 + 1e-9));
    rotary.Add(
        from.FullName("partial_rotary_factor"),
        factor ? std::optional<double>(WholeIfClose(*factor * config.head_dim)) : std::nullopt);
  }
  ASSIGN_OR_RETURN_STATUS(config.rope_theta, theta.One("the rotary base"));
  ASSIGN_OR_RETURN_STATUS(const double rotated, rotary.One("how many dims of a head rotate"));
  config.rotary_dim = static_cast<int32_t>(rotated);
  if (config.rotary_dim != rotated || config.rotary_dim < 2 || config.rotary_dim % 2 != 0 ||
      config.rotary_dim > config.head_dim) {
    return InvalidArgument(
        "rotary_dim (or head_dim times partial_rotary_factor) is " + std::to_string(rotated) +
        ", expected an even number from 2 to head_dim " + std::to_string(config.head_dim));
  }
  return Status::Ok();
}

Status ReadExperts(const JsonFields& fields, ModelConfig& config) {
  const json::value* count = fields.Find("num_local_experts");
  if (count == nullptr) return MissingKey("num_local_experts", "an integer");
  int64_t experts = 0;
  if (const json::array* list = count->if_array()) {
    const bool equal =
        !list->empty() && std::all_of(list->begin(), list->end(), [&](const auto& entry) {
          return entry.is_int64() && entry == list->front();
        });
    if (!equal) {
      return WrongValue("num_local_experts", *count, "one number, or a list of equal numbers");
    }
    experts = list->front().get_int64();
  } else if (count->is_int64()) {
    experts = count->get_int64();
  }
  if (experts < 2 || experts > kExpertsMax) {
    return WrongValue("num_local_experts", *count,
                      "an integer from 2 to " + std::to_string(kExpertsMax) +
                          " (1 would be a dense MLP, which is not served)");
  }
  config.experts = static_cast<int32_t>(experts);
  ASSIGN_OR_RETURN_STATUS(const int64_t chosen,
                          fields.NeedInteger("num_experts_per_tok", 1, experts));
  config.experts_per_token = static_cast<int32_t>(chosen);

  if (const json::value* shared = fields.Find("shared_intermediate_size")) {
    const auto zero = [](const json::value& entry) { return entry == 0; };
    const json::array* list = shared->if_array();
    const bool none = list ? std::all_of(list->begin(), list->end(), zero) : zero(*shared);
    if (!none) {
      return WrongValue("shared_intermediate_size", *shared, "0: a shared expert is not served");
    }
  }
  return Status::Ok();
}

Status ReadResidual(const JsonFields& fields, std::string_view legacy, std::string_view native,
                    ModelConfig::Residual& residual) {
  for (const auto& [word, value] :
       {std::pair{"alpha", &residual.alpha}, {"beta", &residual.beta}}) {
    const std::string old_key = std::string(legacy) + "_" + word;
    const std::string new_key = std::string(native) + "_" + word + "_factor";
    Spellings spellings;
    for (const std::string& key : {old_key, new_key}) {
      ASSIGN_OR_RETURN_STATUS(const std::optional<double> factor,
                              fields.Number(key, -kInfinity, kInfinity));
      spellings.Add(key, factor);
    }
    ASSIGN_OR_RETURN_STATUS(*value, spellings.One("a residual factor"));
  }
  return Status::Ok();
}

Status ReadNorms(const JsonFields& fields, ModelConfig& config) {
  ASSIGN_OR_RETURN_STATUS(const std::optional<bool> postnorm, fields.Boolean("postnorm"));
  // The native class has no such key: it is always post-norm (model.md 1.3).
  if (!postnorm && config.family != ModelConfig::Family::kNative) {
    return MissingKey("postnorm", "true or false");
  }
  config.postnorm = postnorm.value_or(true);
  ASSIGN_OR_RETURN_STATUS(const double eps, fields.NeedNumber("rms_norm_eps", 0, 1));
  if (eps < std::numeric_limits<float>::min()) {
    return WrongValue("rms_norm_eps", *fields.Find("rms_norm_eps"), "a number that is a float");
  }
  config.rms_norm_eps = static_cast<float>(eps);
  RETURN_IF_ERROR(
      ReadResidual(fields, "layernorm_linear_attention", "linear_attn", config.lightning));
  RETURN_IF_ERROR(ReadResidual(fields, "layernorm_full_attention", "full_attn", config.softmax));
  return ReadResidual(fields, "layernorm_mlp", "mlp", config.mlp);
}

Status ReadQuantization(const JsonFields& fields, ModelConfig& config) {
  const json::value* value = fields.Find("quantization_config");
  if (value == nullptr) return Status::Ok();
  const json::object* object = value->if_object();
  const json::value* method = object ? object->if_contains("quant_method") : nullptr;
  if (method == nullptr || *method != "experts_int8" || object->size() != 1) {
    return WrongValue("quantization_config", *value,
                      "{\"quant_method\": \"experts_int8\"}, or no such key");
  }
  config.experts_stored_int8 = true;
  return Status::Ok();
}

Status RefuseOthers(const JsonFields& fields) {
  if (const json::value* act = fields.Find("hidden_act"); act != nullptr && *act != "silu") {
    return WrongValue("hidden_act", *act, "\"silu\"");
  }
  if (const json::value* window = fields.Find("sliding_window")) {
    return WrongValue("sliding_window", *window, "null: there is no sliding window here");
  }
  for (std::string_view key : kMustBeOff) {
    const json::value* value = fields.Find(key);
    if (value != nullptr && *value != false && *value != 0) {
      return WrongValue(key, *value, "null, false or 0: this network has none");
    }
  }
  // The prefill block of other programs: no effect on the numbers, but it must make sense.
  Spellings block;
  for (std::string_view key : {"block", "block_size"}) {
    ASSIGN_OR_RETURN_STATUS(const std::optional<int64_t> tokens, fields.Integer(key, 1, 1 << 20));
    if (tokens) block.Add(std::string(key), static_cast<double>(*tokens));
  }
  if (fields.Find("block") != nullptr || fields.Find("block_size") != nullptr) {
    ASSIGN_OR_RETURN_STATUS([[maybe_unused]] const double agreed, block.One("a number of tokens"));
  }
  return Status::Ok();
}

Status ReadAll(const JsonFields& fields, ModelConfig& config) {
  RETURN_IF_ERROR(ReadArchitecture(fields, config));
  RETURN_IF_ERROR(ReadSizes(fields, config));
  RETURN_IF_ERROR(ReadLayerKinds(fields, config));
  RETURN_IF_ERROR(ReadRope(fields, config));
  RETURN_IF_ERROR(ReadExperts(fields, config));
  RETURN_IF_ERROR(ReadNorms(fields, config));
  RETURN_IF_ERROR(ReadQuantization(fields, config));
  ASSIGN_OR_RETURN_STATUS(const std::optional<bool> tied, fields.Boolean("tie_word_embeddings"));
  config.tie_word_embeddings = tied.value_or(false);
  return RefuseOthers(fields);
}

}  // namespace

Result<ModelConfig> ParseModelConfig(std::string_view text) {
  ASSIGN_OR_RETURN(const json::object object, ParseStrictObject(text));
  ModelConfig config;
  RETURN_ERROR_IF(ReadAll(JsonFields(object), config));
  return config;
}

Result<ModelConfig> LoadModelConfig(const std::filesystem::path& model_dir) {
  const std::filesystem::path path = model_dir / "config.json";
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, kConfigBytesMax));
  Result<ModelConfig> config = ParseModelConfig(text);
  if (!config) return Error(std::move(config).error().Annotate("'" + path.string() + "'"));
  return config;
}

}  // namespace levin
