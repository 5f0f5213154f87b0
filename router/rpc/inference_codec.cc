#include "router/rpc/inference_codec.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace levin {
namespace {

constexpr int kMessagesMax = 4096;
constexpr int kToolsMax = 128;
constexpr int kBiasMax = 4096;

Status Unsupported(const char* path, const std::string& message) {
  return Status(Code::kInvalidArgument, "UNSUPPORTED_PARAMETER", message).WithParam(path);
}

Status BadField(const std::string& path, const std::string& message) {
  return InvalidArgument(message).WithParam(path);
}

void ReadSampling(const v1::SamplingParams& sampling, InferenceRequest& out) {
  if (sampling.has_temperature()) out.temperature = sampling.temperature();
  if (sampling.has_top_p()) out.top_p = sampling.top_p();
  if (sampling.has_top_k()) out.top_k = sampling.top_k();
  if (sampling.has_min_p()) out.min_p = sampling.min_p();
  if (sampling.has_frequency_penalty()) out.frequency_penalty = sampling.frequency_penalty();
  if (sampling.has_presence_penalty()) out.presence_penalty = sampling.presence_penalty();
  if (sampling.has_repetition_penalty()) out.repetition_penalty = sampling.repetition_penalty();
  if (sampling.has_seed()) out.seed = sampling.seed();
  if (sampling.has_n()) out.n = sampling.n();
  for (const auto& [id, bias] : sampling.logit_bias()) out.logit_bias.emplace_back(id, bias);
  std::sort(out.logit_bias.begin(), out.logit_bias.end());  // a map of protobuf has no order
  if (sampling.allowed_token_ids_size() > 0) {
    out.allowed_token_ids.emplace(sampling.allowed_token_ids().begin(),
                                  sampling.allowed_token_ids().end());
  }
  out.bad_words.assign(sampling.bad_words().begin(), sampling.bad_words().end());
  if (sampling.has_min_tokens()) out.min_tokens = sampling.min_tokens();
}

void ReadStopping(const v1::StoppingCriteria& stopping, InferenceRequest& out) {
  if (stopping.has_max_tokens()) out.max_tokens = stopping.max_tokens();
  out.stop.assign(stopping.stop().begin(), stopping.stop().end());
  out.stop_token_ids.assign(stopping.stop_token_ids().begin(), stopping.stop_token_ids().end());
  out.ignore_eos = stopping.ignore_eos();
  out.include_stop = stopping.include_stop();
}

void ReadOutput(const v1::OutputOptions& output, ReadRequest& out) {
  InferenceRequest& inference = out.inference;
  if (output.has_logprobs()) inference.logprobs = output.logprobs();
  if (output.has_skip_special_tokens()) {
    inference.skip_special_tokens = output.skip_special_tokens();
  }
  if (output.has_truncate_prompt_tokens()) {
    inference.truncate_prompt_tokens = output.truncate_prompt_tokens();
  }
  out.form = {.whole = output.mode() == v1::OUTPUT_MODE_WHOLE,
              .echo = output.echo(),
              .logprobs = output.has_logprobs(),
              .return_token_ids = output.return_token_ids(),
              .usage_every_event = output.usage_every_event()};
}

template <typename Request>
Status CheckBuilt(const Request& request) {
  if (request.constraint().kind_case() != v1::Constraint::KIND_NOT_SET) {
    return Unsupported("constraint", "constraints are not supported yet");
  }
  if (request.output().has_prompt_logprobs()) {
    return Unsupported("output.prompt_logprobs", "prompt_logprobs is not supported yet");
  }
  if (request.priority() != 0) {
    return Unsupported("priority",
                       "priority other than 0 needs another scheduling policy than fcfs");
  }
  if (request.sampling().logit_bias_size() > kBiasMax) {
    return BadField("sampling.logit_bias",
                    "logit_bias may hold at most " + std::to_string(kBiasMax) + " tokens");
  }
  return Status::Ok();
}

template <typename Request>
Result<ReadRequest> ReadCommon(const Request& request) {
  RETURN_ERROR_IF(CheckBuilt(request));
  ReadRequest out;
  ReadSampling(request.sampling(), out.inference);
  ReadStopping(request.stopping(), out.inference);
  ReadOutput(request.output(), out);
  return out;
}

bool IsToolName(std::string_view name) {
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
  return !name.empty() && name.size() <= 64 &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}

Status CheckTools(const v1::ChatRequest& request) {
  if (request.tools_size() > kToolsMax) {
    return BadField("tools", "tools may hold at most " + std::to_string(kToolsMax) +
                                 " entries, got " + std::to_string(request.tools_size()));
  }
  for (int i = 0; i < request.tools_size(); ++i) {
    if (IsToolName(request.tools(i).name())) continue;
    return BadField("tools[" + std::to_string(i) + "].name",
                    "the name of a tool has 1 to 64 letters, digits, '_', '.' or '-'");
  }
  switch (request.tool_choice().mode()) {
    case v1::TOOL_CHOICE_MODE_REQUIRED:
      return Unsupported("tool_choice.mode", "tool_choice required is not supported yet");
    case v1::TOOL_CHOICE_MODE_FUNCTION:
      return Unsupported("tool_choice.mode", "tool_choice of one function is not supported yet");
    default:
      return Status::Ok();
  }
}

Status CheckChat(const v1::ChatRequest& request) {
  if (request.messages_size() < 1 || request.messages_size() > kMessagesMax) {
    return BadField("messages", "messages must hold 1 to " + std::to_string(kMessagesMax) +
                                    " messages, got " + std::to_string(request.messages_size()));
  }
  RETURN_IF_ERROR(CheckTools(request));
  if (request.output().echo()) {
    return Unsupported("output.echo", "echo is not supported in chat yet");
  }
  if (request.has_thinking_token_budget() && request.thinking_token_budget() != -1) {
    return Unsupported("thinking_token_budget", "thinking_token_budget is not supported yet");
  }
  if (request.continue_final_message() && request.add_generation_prompt()) {
    return BadField("add_generation_prompt",
                    "add_generation_prompt: true contradicts continue_final_message: true");
  }
  return Status::Ok();
}

}  // namespace

Result<ReadRequest> ReadGenerate(const v1::GenerateRequest& request) {
  ASSIGN_OR_RETURN(ReadRequest out, ReadCommon(request));
  if (out.form.echo && out.form.logprobs) {
    return Error(Unsupported("output.echo", "echo together with logprobs is not supported yet"));
  }
  switch (request.prompt_case()) {
    case v1::GenerateRequest::kText:
      out.inference.prompt_param = "text";
      break;
    case v1::GenerateRequest::kTokenIds:
      out.inference.prompt_param = "token_ids";
      break;
    case v1::GenerateRequest::PROMPT_NOT_SET:
      return Error(BadField("prompt", "a prompt is required: text or token_ids"));
  }
  out.inference.max_tokens_least = 0;
  return out;
}

Result<ReadRequest> ReadChat(const v1::ChatRequest& request) {
  RETURN_ERROR_IF(CheckChat(request));
  ASSIGN_OR_RETURN(ReadRequest out, ReadCommon(request));
  out.inference.prompt_param = "messages";
  ReplyOptions& reply = out.inference.reply;
  reply.chat = true;
  reply.parse_tools =
      request.tools_size() > 0 && request.tool_choice().mode() != v1::TOOL_CHOICE_MODE_NONE;
  reply.parallel_tool_calls = !request.has_parallel_tool_calls() || request.parallel_tool_calls();
  reply.include_reasoning =
      !request.output().has_include_reasoning() || request.output().include_reasoning();
  return out;
}

std::string FieldPath(const std::string& param) {
  static const std::map<std::string, std::string, std::less<>> groups = {
      {"temperature", "sampling"},
      {"top_p", "sampling"},
      {"top_k", "sampling"},
      {"min_p", "sampling"},
      {"frequency_penalty", "sampling"},
      {"presence_penalty", "sampling"},
      {"repetition_penalty", "sampling"},
      {"seed", "sampling"},
      {"n", "sampling"},
      {"logit_bias", "sampling"},
      {"allowed_token_ids", "sampling"},
      {"bad_words", "sampling"},
      {"min_tokens", "sampling"},
      {"max_tokens", "stopping"},
      {"stop", "stopping"},
      {"stop_token_ids", "stopping"},
      {"logprobs", "output"},
      {"truncate_prompt_tokens", "output"}};
  const auto group = groups.find(param.substr(0, param.find_first_of(".[")));
  return group == groups.end() ? param : group->second + "." + param;
}

}  // namespace levin
