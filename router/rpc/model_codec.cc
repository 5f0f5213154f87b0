#include "router/rpc/model_codec.h"

#include "router/text/utf8.h"

namespace levin {
namespace {

v1::ModelState StateOf(const Generator& generator, bool draining) {
  if (draining) return v1::MODEL_STATE_DRAINING;
  // A fingerprint is of a model and the group that runs it.
  return generator.fingerprint().empty() ? v1::MODEL_STATE_LOADING : v1::MODEL_STATE_ACTIVE;
}

void SetDefaults(const GenerationDefaults& defaults, v1::SamplingParams& out) {
  if (defaults.temperature) out.set_temperature(static_cast<float>(*defaults.temperature));
  if (defaults.top_p) out.set_top_p(static_cast<float>(*defaults.top_p));
  if (defaults.min_p) out.set_min_p(static_cast<float>(*defaults.min_p));
  if (defaults.top_k) out.set_top_k(static_cast<int32_t>(*defaults.top_k));
  if (defaults.repetition_penalty) {
    out.set_repetition_penalty(static_cast<float>(*defaults.repetition_penalty));
  }
}

}  // namespace

void DescribeModel(const Generator& generator, bool draining, v1::GetModelResponse& out) {
  const ModelInfo& info = generator.model().info();
  const int64_t window = generator.window();
  out.set_name(info.names.front());
  for (size_t i = 1; i < info.names.size(); ++i) out.add_aliases(info.names[i]);
  out.set_family(info.family);
  out.set_max_model_len(static_cast<uint64_t>(window));
  out.set_output_tokens_max(
      static_cast<uint64_t>(info.max_output_tokens > 0 ? info.max_output_tokens : window));
  out.set_vocab_size(static_cast<uint32_t>(info.vocab_size));
  out.add_eos_token_ids(static_cast<uint32_t>(info.eos));
  for (TokenId id : info.extra_stop_ids) out.add_eos_token_ids(static_cast<uint32_t>(id));
  SetDefaults(info.defaults, *out.mutable_default_sampling());
  out.set_quantization(info.quantization);
  out.set_dtype(info.dtype);
  out.add_features("logprobs");
  if (info.tool_family != ToolFamily::kNone) out.add_features("tools");
  if (info.parse_reasoning) out.add_features("reasoning");
  out.set_fingerprint(generator.fingerprint());
  out.set_state(StateOf(generator, draining));
}

std::string WholeText(std::string_view bytes) {
  Utf8Assembler assembler;
  std::string text;
  assembler.Push(bytes, text);
  if (!assembler.held().empty()) AppendUtf8(kReplacement, text);
  return text;
}

}  // namespace levin
