#include "router/api/sampling_json.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace levin {
namespace {

namespace json = boost::json;

constexpr size_t kBiasMax = 4096;

// A key of logit_bias: decimal digits, perhaps a minus sign.
std::optional<int64_t> ParseId(std::string_view text) {
  int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return id;
}

void ReadBias(FieldReader& reader, InferenceRequest& out) {
  const json::object* bias = reader.Object("logit_bias");
  if (bias == nullptr) return;
  if (bias->size() > kBiasMax) {
    return reader.Fail(InvalidArgument("logit_bias may hold at most " + std::to_string(kBiasMax) +
                                       " tokens, got " + std::to_string(bias->size()))
                           .WithParam("logit_bias"));
  }
  for (const json::key_value_pair& pair : *bias) {
    const std::string key(pair.key());
    const std::string path = "logit_bias." + key;
    const std::optional<int64_t> id = ParseId(key);
    if (!id) {
      return reader.Fail(InvalidArgument("the keys of logit_bias are token ids, got '" + key + "'")
                             .WithParam(path));
    }
    if (!pair.value().is_number()) return reader.Fail(WrongType(path, "a number", pair.value()));
    out.logit_bias.emplace_back(*id, pair.value().to_number<double>());
  }
}

struct Unbuilt {
  const char* field;
  bool (*asks)(const json::value&);  // does this value ask for what is not there?
  const char* message;
};

bool Always(const json::value&) { return true; }
bool IfTrue(const json::value& v) { return !v.is_bool() || v.get_bool(); }
bool IfNotEmpty(const json::value& v) { return !v.is_string() || !v.get_string().empty(); }
bool IfNotZero(const json::value& v) { return !v.is_number() || v.to_number<double>() != 0; }
bool IfNotUnlimited(const json::value& v) { return !v.is_number() || v.to_number<double>() != -1; }

bool IfNotText(const json::value& v) {
  const json::object* format = v.if_object();
  const json::value* type = format == nullptr ? nullptr : format->if_contains("type");
  return type == nullptr || !type->is_string() || type->get_string() != "text";
}

bool IfOtherThanText(const json::value& v) {
  const json::array* modalities = v.if_array();
  if (modalities == nullptr) return true;
  return std::any_of(modalities->begin(), modalities->end(), [](const json::value& one) {
    return !one.is_string() || one.get_string() != "text";
  });
}

constexpr Unbuilt kUnbuilt[] = {
    {"prompt_logprobs", Always, "prompt_logprobs is not supported yet"},
    {"suffix", IfNotEmpty, "suffix is not supported: the model is not trained to fill gaps"},
    {"prompt_embeds", Always, "prompt_embeds is not supported"},
    {"use_beam_search", IfTrue, "beam search is not supported"},
    {"response_format", IfNotText, "response_format other than text is not supported yet"},
    {"guided_json", Always, "guided_json is not supported yet"},
    {"guided_regex", Always, "guided_regex is not supported yet"},
    {"guided_choice", Always, "guided_choice is not supported yet"},
    {"guided_grammar", Always, "guided_grammar is not supported yet"},
    {"structured_outputs", Always, "structured_outputs is not supported yet"},
    {"chat_template", Always, "a chat_template in the request is not supported"},
    {"thinking_token_budget", IfNotUnlimited, "thinking_token_budget is not supported yet"},
    {"priority", IfNotZero, "priority other than 0 needs another scheduling policy than fcfs"},
    {"functions", Always, "functions is not supported: send tools"},
    {"function_call", Always, "function_call is not supported: send tool_choice"},
    {"modalities", IfOtherThanText, "only the modality text is supported"},
    {"audio", Always, "audio is not supported: the model writes text"},
};

}  // namespace

void ReadInference(FieldReader& reader, InferenceRequest& out) {
  out.temperature = reader.Number("temperature");
  out.top_p = reader.Number("top_p");
  out.top_k = reader.Integer("top_k");
  out.min_p = reader.Number("min_p");
  out.frequency_penalty = reader.Number("frequency_penalty");
  out.presence_penalty = reader.Number("presence_penalty");
  out.repetition_penalty = reader.Number("repetition_penalty");
  out.seed = reader.Integer("seed");
  out.n = reader.Integer("n");
  ReadBias(reader, out);
  if (reader.Has("allowed_token_ids")) out.allowed_token_ids = reader.Integers("allowed_token_ids");
  out.bad_words = reader.Strings("bad_words");
  out.max_tokens = reader.Integer("max_tokens");
  out.min_tokens = reader.Integer("min_tokens");
  out.stop = reader.StringOrStrings("stop");
  out.stop_token_ids = reader.Integers("stop_token_ids");
  out.ignore_eos = reader.Bool("ignore_eos").value_or(false);
  out.include_stop = reader.Bool("include_stop_str_in_output").value_or(false);
  out.skip_special_tokens = reader.Bool("skip_special_tokens").value_or(true);
  out.truncate_prompt_tokens = reader.Integer("truncate_prompt_tokens");
}

void ReadShape(FieldReader& reader, ReplyShape& out) {
  out.stream = reader.Bool("stream").value_or(false);
  out.return_token_ids = reader.Bool("return_token_ids").value_or(false);
  out.return_tokens_as_token_ids = reader.Bool("return_tokens_as_token_ids").value_or(false);
  const json::object* options = reader.Object("stream_options");
  if (options == nullptr) return;
  if (!out.stream) {
    return reader.Fail(InvalidArgument("stream_options is only allowed with stream: true")
                           .WithParam("stream_options"));
  }
  FieldReader inner(*options, "stream_options");
  out.include_usage = inner.Bool("include_usage").value_or(false);
  out.continuous_usage_stats = inner.Bool("continuous_usage_stats").value_or(false);
  reader.Fail(inner.status());
}

void RefuseUnsupported(FieldReader& reader) {
  for (const Unbuilt& field : kUnbuilt) {
    const json::value* value = reader.Any(field.field);
    if (value != nullptr && field.asks(*value)) {
      reader.Fail(Unsupported(field.field, field.message));
    }
  }
  const int64_t n = reader.Integer("n").value_or(1);
  if (reader.Integer("best_of").value_or(n) != n) {
    reader.Fail(Unsupported("best_of", "best_of other than n is not supported"));
  }
  if (reader.String("cache_salt").value_or("salt").empty()) {
    reader.Fail(InvalidArgument("cache_salt must not be empty").WithParam("cache_salt"));
  }
}

}  // namespace levin
