#include "router/inference/request_check.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "router/text/tokenizer.h"

namespace levin {
namespace {

constexpr double kGreedyBelow = 1e-5;
constexpr double kTemperatureLeast = 0.01;  // below it logits / temperature could overflow
constexpr size_t kStopStringsMax = 32;
constexpr size_t kStopIdsMax = 1024;
constexpr size_t kBadWordsMax = 256;
constexpr size_t kBadWordIdsMax = 1024;         // the workers take no longer sequence
constexpr double kRepetitionPenaltyMin = 1e-6;  // logits are multiplied and divided by it:
constexpr double kRepetitionPenaltyMax = 1e6;   // they must stay finite floats
constexpr int64_t kChoicesMax = 16;

std::string Shown(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}
std::string Shown(int64_t value) { return std::to_string(value); }

Status BadField(std::string param, const std::string& message) {
  return InvalidArgument(message).WithParam(std::move(param));
}

template <typename T>
Status CheckRange(const std::optional<T>& value, T low, T high, std::string param) {
  if (!value || (*value >= low && *value <= high)) return {};  // NaN is in no range
  return BadField(param, param + " must be between " + Shown(low) + " and " + Shown(high) +
                             ", got " + Shown(*value));
}

// (0, high], as a float too.
Status CheckPositive(const std::optional<double>& value, double high, const std::string& allowed,
                     std::string param) {
  if (!value || (*value > 0 && *value <= high)) return {};
  return BadField(param, param + " must be " + allowed + ", got " + Shown(*value));
}

// So many tokens a text of `bytes` bytes has at least.
size_t LeastTokens(size_t bytes, const Tokenizer& tokenizer) {
  const size_t longest = tokenizer.longest_token_bytes();
  return bytes / longest + (bytes % longest != 0);
}

Status CheckTokenId(int64_t id, int32_t vocab_size, const std::string& param) {
  if (id >= 0 && id < vocab_size) return {};
  return BadField(param, param + " holds " + Shown(id) +
                             ", which is no token id: they are from 0 to " +
                             Shown(int64_t{vocab_size} - 1));
}

// Very small positive doubles become 0 as floats; a probability of 0 would keep no token.
float PositiveFloat(double value) {
  return std::max(static_cast<float>(value), std::numeric_limits<float>::min());
}

// ---- sampling

Status CheckSamplingRanges(const InferenceRequest& request) {
  RETURN_IF_ERROR(CheckRange<int64_t>(request.n, 1, kChoicesMax, "n"));
  if (request.n.value_or(1) > 1) {
    return Status(Code::kInvalidArgument, "UNSUPPORTED_PARAMETER",
                  "n above 1 is not supported yet, got " + Shown(*request.n))
        .WithParam("n");
  }
  RETURN_IF_ERROR(CheckRange(request.temperature, 0.0, 2.0, "temperature"));
  RETURN_IF_ERROR(CheckPositive(request.top_p, 1, "above 0 and at most 1", "top_p"));
  RETURN_IF_ERROR(CheckRange(request.min_p, 0.0, 1.0, "min_p"));
  RETURN_IF_ERROR(CheckRange(request.frequency_penalty, -2.0, 2.0, "frequency_penalty"));
  RETURN_IF_ERROR(CheckRange(request.presence_penalty, -2.0, 2.0, "presence_penalty"));
  RETURN_IF_ERROR(CheckRange(request.repetition_penalty, kRepetitionPenaltyMin,
                             kRepetitionPenaltyMax, "repetition_penalty"));
  if (request.top_k && *request.top_k < -1) {
    return BadField("top_k",
                    "top_k must be -1 or 0 (off) or at least 1, got " + Shown(*request.top_k));
  }
  return {};
}

// The request's value, else generation_config.json's, else `otherwise`.
template <typename T>
T Choose(const std::optional<T>& asked, const std::optional<T>& by_model, T otherwise) {
  return asked ? *asked : by_model.value_or(otherwise);
}

void FillDistribution(const InferenceRequest& request, const ModelInfo& model,
                      SamplingParams& out) {
  const GenerationDefaults& defaults = model.defaults;
  const double temperature = Choose(request.temperature, defaults.temperature, 1.0);
  const int64_t top_k = Choose<int64_t>(request.top_k, defaults.top_k, 0);
  if (temperature < kGreedyBelow) {
    out.temperature = 0;  // the filters stay off: greedy has no use for them
  } else {
    out.temperature = static_cast<float>(std::max(temperature, kTemperatureLeast));
    out.top_p = PositiveFloat(Choose(request.top_p, defaults.top_p, 1.0));
    out.min_p = static_cast<float>(Choose(request.min_p, defaults.min_p, 0.0));
    out.top_k = top_k < 1 || top_k >= model.vocab_size ? 0 : static_cast<int32_t>(top_k);
  }
  out.repetition_penalty =
      PositiveFloat(Choose(request.repetition_penalty, defaults.repetition_penalty, 1.0));
  out.frequency_penalty = static_cast<float>(request.frequency_penalty.value_or(0));
  out.presence_penalty = static_cast<float>(request.presence_penalty.value_or(0));
}

Status FillBias(const InferenceRequest& request, const ModelInfo& model, SamplingParams& out) {
  for (const auto& [id, bias] : request.logit_bias) {
    const std::string param = "logit_bias." + Shown(id);
    if (id < 0 || id >= model.vocab_size) {
      return BadField(param, "logit_bias key " + Shown(id) +
                                 " is no token id: they are from 0 to " +
                                 Shown(int64_t{model.vocab_size} - 1));
    }
    if (!(std::abs(bias) <= 100)) {
      return BadField(param, "logit_bias of token " + Shown(id) +
                                 " must be between -100 and 100, got " + Shown(bias));
    }
    out.logit_bias.emplace_back(static_cast<TokenId>(id), static_cast<float>(bias));
  }
  return {};
}

Status FillAllowed(const InferenceRequest& request, const ModelInfo& model,
                   const Tokenizer& tokenizer, SamplingParams& out) {
  if (!request.allowed_token_ids) return {};
  bool any_defined = false;
  for (int64_t id : *request.allowed_token_ids) {
    RETURN_IF_ERROR(CheckTokenId(id, model.vocab_size, "allowed_token_ids"));
    any_defined |= tokenizer.IsDefined(static_cast<TokenId>(id));
    out.allowed_ids.push_back(static_cast<TokenId>(id));
  }
  if (any_defined) return {};
  return BadField("allowed_token_ids", request.allowed_token_ids->empty()
                                           ? "allowed_token_ids must not be empty"
                                           : "allowed_token_ids holds no token that the tokenizer "
                                             "defines: nothing could be generated");
}

// A word is forbidden as it stands, and also as the tokens that it has behind a space.
Status AppendBadWord(const std::string& word, const std::string& param, const Tokenizer& tokenizer,
                     SamplingParams& out) {
  const Status too_long =
      BadField(param, param + " becomes more than " + std::to_string(kBadWordIdsMax) +
                          " tokens, which is the limit of one bad word");
  if (LeastTokens(word.size(), tokenizer) > kBadWordIdsMax) return too_long;
  const size_t begin = word.find_first_not_of(' ');
  const std::string bare = begin == std::string::npos ? word : word.substr(begin);
  std::vector<TokenId> plain = tokenizer.Encode(bare, SpecialTokens::kPlainText);
  std::vector<TokenId> spaced = tokenizer.Encode(' ' + bare, SpecialTokens::kPlainText);
  if (std::max(plain.size(), spaced.size()) > kBadWordIdsMax) return too_long;
  const bool another_word =
      !spaced.empty() && !plain.empty() && spaced[0] != plain[0] && spaced.size() == plain.size();
  if (!plain.empty()) out.bad_sequences.push_back(std::move(plain));
  if (another_word) out.bad_sequences.push_back(std::move(spaced));
  return {};
}

Status FillBadWords(const InferenceRequest& request, const Tokenizer& tokenizer,
                    SamplingParams& out) {
  if (request.bad_words.size() > kBadWordsMax) {
    return BadField("bad_words", "bad_words may hold at most " + Shown(int64_t{kBadWordsMax}) +
                                     " words, got " + std::to_string(request.bad_words.size()));
  }
  for (size_t i = 0; i < request.bad_words.size(); ++i) {
    if (request.bad_words[i].empty()) {
      return BadField("bad_words[" + std::to_string(i) + "]", "a bad word must not be empty");
    }
    RETURN_IF_ERROR(AppendBadWord(request.bad_words[i], "bad_words[" + std::to_string(i) + "]",
                                  tokenizer, out));
  }
  return {};
}

Status FillLogprobs(const InferenceRequest& request, const ModelInfo& model, SamplingParams& out) {
  const int64_t most = model.max_logprobs < 0 ? model.vocab_size : model.max_logprobs;
  RETURN_IF_ERROR(CheckRange<int64_t>(request.logprobs, 0, most, request.logprobs_param));
  if (request.logprobs) out.logprobs = static_cast<int32_t>(*request.logprobs);
  return {};
}

Status FillSampling(const InferenceRequest& request, const ModelInfo& model,
                    const Tokenizer& tokenizer, uint64_t random_seed, SamplingParams& out) {
  RETURN_IF_ERROR(CheckSamplingRanges(request));
  FillDistribution(request, model, out);
  out.seed = request.seed ? static_cast<uint64_t>(*request.seed) : random_seed;
  RETURN_IF_ERROR(FillBias(request, model, out));
  RETURN_IF_ERROR(FillAllowed(request, model, tokenizer, out));
  RETURN_IF_ERROR(FillBadWords(request, tokenizer, out));
  return FillLogprobs(request, model, out);
}

// ---- prompt and length

Status FillPrompt(InferenceRequest& request, const ModelInfo& model, int64_t window,
                  std::vector<TokenId>& out) {
  for (TokenId id : request.prompt) {
    RETURN_IF_ERROR(CheckTokenId(id, model.vocab_size, request.prompt_param));
  }
  out = std::move(request.prompt);
  if (request.truncate_prompt_tokens) {
    const int64_t keep =
        *request.truncate_prompt_tokens == -1 ? window : *request.truncate_prompt_tokens;
    if (keep < 1 || keep > window) {
      return BadField("truncate_prompt_tokens", "truncate_prompt_tokens must be -1 or from 1 to " +
                                                    Shown(window) + ", got " +
                                                    Shown(*request.truncate_prompt_tokens));
    }
    if (static_cast<int64_t>(out.size()) > keep) out.erase(out.begin(), out.end() - keep);
  }
  if (out.empty()) {
    return BadField(request.prompt_param, request.prompt_param + " must not be empty");
  }
  return {};
}

// Clients recognise the beginning of this message (api.md 1, 5). `least`: "at least " where the
// prompt was not counted to its end.
Status ContextExceeded(const InferenceRequest& request, int64_t window, int64_t prompt,
                       int64_t output, const std::string& least = "") {
  return Status(Code::kInvalidArgument, "CONTEXT_LENGTH_EXCEEDED",
                "This model's maximum context length is " + Shown(window) +
                    " tokens. However, you requested " + least + Shown(prompt + output) +
                    " tokens (" + least + Shown(prompt) + " in the " + request.prompt_param + ", " +
                    Shown(output) + " in the completion). Please reduce the length of the " +
                    request.prompt_param + " or completion.")
      .WithParam(request.prompt_param);
}

Result<int32_t> ChooseMaxTokens(const InferenceRequest& request, const ModelInfo& model,
                                const RequestLimits& limits, int64_t prompt) {
  int64_t cap = std::numeric_limits<int32_t>::max();
  if (model.max_output_tokens > 0) cap = std::min(cap, model.max_output_tokens);
  if (limits.max_new_tokens > 0) cap = std::min(cap, limits.max_new_tokens);

  if (!request.max_tokens) {
    if (prompt >= limits.window) return Error(ContextExceeded(request, limits.window, prompt, 1));
    const int64_t usual = request.default_max_tokens.value_or(model.default_max_tokens);
    return static_cast<int32_t>(std::min({usual, limits.window - prompt, cap}));
  }
  const int64_t asked = *request.max_tokens;
  const std::string& param = request.max_tokens_param;
  if (asked < request.max_tokens_least) {
    return Error(BadField(param, param + " must be at least " + Shown(request.max_tokens_least) +
                                     ", got " + Shown(asked)));
  }
  // Written so that no sum can overflow.
  if (prompt > limits.window || asked > limits.window - prompt) {
    const int64_t room = std::numeric_limits<int64_t>::max() - prompt;
    return Error(ContextExceeded(request, limits.window, prompt, std::min(asked, room)));
  }
  if (asked > cap) {
    return Error(BadField(
        param, param + " must be at most " + Shown(cap) + " on this server, got " + Shown(asked)));
  }
  return static_cast<int32_t>(asked);
}

// ---- stopping

Status CheckStopStrings(const std::vector<std::string>& stop) {
  if (stop.size() > kStopStringsMax) {
    return BadField("stop", "stop may hold at most " + Shown(int64_t{kStopStringsMax}) +
                                " strings, got " + std::to_string(stop.size()));
  }
  for (const std::string& one : stop) {
    if (one.empty()) return BadField("stop", "a stop string must not be empty");
  }
  return {};
}

void AppendOnce(TokenId id, std::vector<TokenId>& ids) {
  if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
}

Status FillStopping(InferenceRequest& request, const ModelInfo& model, int32_t max_tokens,
                    PreparedRequest& out) {
  SamplingParams& sampling = out.generation.sampling;
  RETURN_IF_ERROR(CheckStopStrings(request.stop));
  RETURN_IF_ERROR(CheckRange<int64_t>(request.min_tokens, 0, max_tokens, "min_tokens"));
  if (request.stop_token_ids.size() > kStopIdsMax) {
    return BadField("stop_token_ids", "stop_token_ids may hold at most " +
                                          Shown(int64_t{kStopIdsMax}) + " ids, got " +
                                          std::to_string(request.stop_token_ids.size()));
  }
  sampling.min_tokens = static_cast<int32_t>(request.min_tokens.value_or(0));
  if (!request.ignore_eos) {
    out.eos = model.eos;
    sampling.stop_ids.push_back(model.eos);
    for (TokenId id : model.extra_stop_ids) AppendOnce(id, sampling.stop_ids);
  }
  for (int64_t id : request.stop_token_ids) {
    RETURN_IF_ERROR(CheckTokenId(id, model.vocab_size, "stop_token_ids"));
    AppendOnce(static_cast<TokenId>(id), sampling.stop_ids);
  }
  out.stop = std::move(request.stop);
  out.include_stop = request.include_stop;
  out.skip_special_tokens = request.skip_special_tokens;
  return {};
}

// With every allowed token forbidden there would be nothing to draw from.
Status CheckAnyDrawable(const SamplingParams& sampling, const Tokenizer& tokenizer) {
  if (sampling.allowed_ids.empty()) return {};
  std::vector<TokenId> forbidden;
  for (const auto& sequence : sampling.bad_sequences) {
    if (sequence.size() == 1) forbidden.push_back(sequence.front());
  }
  if (sampling.min_tokens > 0) {
    forbidden.insert(forbidden.end(), sampling.stop_ids.begin(), sampling.stop_ids.end());
  }
  std::sort(forbidden.begin(), forbidden.end());
  for (TokenId id : sampling.allowed_ids) {
    if (tokenizer.IsDefined(id) && !std::binary_search(forbidden.begin(), forbidden.end(), id)) {
      return {};
    }
  }
  return BadField("allowed_token_ids",
                  "allowed_token_ids holds no token that could be drawn: bad_words forbids them, "
                  "or they end the reply before min_tokens");
}

ReplyParserOptions ParserOf(const ReplyOptions& reply, const ModelInfo& model) {
  return {.reasoning = model.parse_reasoning,
          .include_reasoning = reply.include_reasoning,
          .tools = reply.parse_tools ? model.tool_family : ToolFamily::kNone,
          .parallel_tool_calls = reply.parallel_tool_calls,
          .start = reply.think_start,
          .function_call = model.function_call,
          .id_seed = std::nullopt};
}

int64_t DeadlineOf(const InferenceRequest& request, const RequestLimits& limits) {
  int64_t timeout_ms = request.timeout_ms;
  if (limits.timeout_ms > 0 && (timeout_ms <= 0 || limits.timeout_ms < timeout_ms)) {
    timeout_ms = limits.timeout_ms;
  }
  return timeout_ms > 0 ? limits.now_unix_ms + timeout_ms : 0;
}

}  // namespace

Status CheckTextFits(const InferenceRequest& request, size_t bytes, const Tokenizer& tokenizer,
                     int64_t window) {
  if (window <= 0 || request.truncate_prompt_tokens) return {};
  const auto least = static_cast<int64_t>(LeastTokens(bytes, tokenizer));
  if (least <= window) return {};
  const int64_t room = std::numeric_limits<int64_t>::max() - least;
  const int64_t output = std::clamp<int64_t>(request.max_tokens.value_or(1), 0, room);
  return ContextExceeded(request, window, least, output, "at least ");
}

Result<PreparedRequest> PrepareRequest(InferenceRequest request, const ModelInfo& model,
                                       const Tokenizer& tokenizer, const RequestLimits& limits) {
  PreparedRequest out;
  Generation& generation = out.generation;
  RETURN_ERROR_IF(FillSampling(request, model, tokenizer, limits.random_seed, generation.sampling));
  RETURN_ERROR_IF(FillPrompt(request, model, limits.window, generation.prompt));
  ASSIGN_OR_RETURN(generation.max_new_tokens,
                   ChooseMaxTokens(request, model, limits, out.prompt_tokens()));
  RETURN_ERROR_IF(FillStopping(request, model, generation.max_new_tokens, out));
  RETURN_ERROR_IF(CheckAnyDrawable(generation.sampling, tokenizer));
  generation.deadline_unix_ms = DeadlineOf(request, limits);
  if (request.reply.chat) out.parser = ParserOf(request.reply, model);
  return out;
}

}  // namespace levin
