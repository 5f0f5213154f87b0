#include "router/api/reply_format.h"

#include <iterator>
#include <utility>

#include "common/base/check.h"
#include "router/api/json_writer.h"

namespace levin {
namespace {

void MoveTokens(std::vector<SampledToken>& from, std::vector<SampledToken>& to) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

}  // namespace

void ChoiceResult::Add(ReplyEvent event) {
  if (auto* delta = std::get_if<DeltaEvent>(&event)) {
    (delta->kind == TextKind::kContent ? content : reasoning) += delta->text;
    MoveTokens(delta->tokens, tokens);
  } else if (auto* start = std::get_if<ToolStartEvent>(&event)) {
    tool_calls.push_back({std::move(start->id), std::move(start->name), {}});
    MoveTokens(start->tokens, tokens);
  } else if (auto* args = std::get_if<ToolArgsEvent>(&event)) {
    CHECK_LT(static_cast<size_t>(args->index), tool_calls.size());
    tool_calls[args->index].arguments += args->fragment;
    MoveTokens(args->tokens, tokens);
  } else if (auto* end = std::get_if<ChoiceFinishedEvent>(&event)) {
    MoveTokens(end->tokens, tokens);
    finish = std::move(*end);
  }
}

std::string_view NameOf(ReplyFinish reason) {
  switch (reason) {
    case ReplyFinish::kStop:
      return "stop";
    case ReplyFinish::kLength:
      return "length";
    case ReplyFinish::kToolCalls:
      return "tool_calls";
    case ReplyFinish::kCancelled:
      break;  // is an error here, never a finish_reason
  }
  return "stop";
}

void WriteHead(JsonWriter& json, const ReplyHead& head, std::string_view object) {
  json.Field("id", head.id).Field("object", object);
  json.Field("created", head.created).Field("model", head.model);
}

void WriteUsage(JsonWriter& json, const ReplyUsage& usage) {
  json.Key("usage").BeginObject();
  json.Field("prompt_tokens", usage.prompt_tokens);
  json.Field("completion_tokens", usage.completion_tokens);
  json.Field("total_tokens", usage.prompt_tokens + usage.completion_tokens);
  json.Key("prompt_tokens_details").BeginObject();
  json.Field("cached_tokens", usage.cached_tokens).EndObject();
  json.Key("completion_tokens_details").BeginObject();
  json.Field("reasoning_tokens", usage.reasoning_tokens).EndObject();
  json.EndObject();
}

std::string CloseChunk(JsonWriter& json, const ReplyUsage* usage) {
  json.EndObject().EndArray();
  if (usage != nullptr) WriteUsage(json, *usage);
  json.EndObject();
  return json.Take();
}

std::string MakeUsageChunk(const ReplyHead& head, std::string_view object,
                           const ReplyUsage& usage) {
  JsonWriter json;
  json.BeginObject();
  WriteHead(json, head, object);
  json.Key("choices").BeginArray().EndArray();
  WriteUsage(json, usage);
  json.EndObject();
  return json.Take();
}

void WriteFinish(JsonWriter& json, const ChoiceFinishedEvent* finish) {
  if (finish == nullptr) {
    json.NullField("finish_reason");
    return;
  }
  json.Field("finish_reason", NameOf(finish->reason)).Key("stop_reason");
  if (finish->stop_string) {
    json.String(*finish->stop_string);
  } else if (finish->stop_token) {
    json.Integer(*finish->stop_token);
  } else {
    json.Null();
  }
}

void WriteIds(JsonWriter& json, std::string_view key, std::span<const TokenId> ids) {
  json.Key(key).BeginArray();
  for (TokenId id : ids) json.Integer(id);
  json.EndArray();
}

void WriteTokenIds(JsonWriter& json, std::span<const SampledToken> tokens) {
  json.Key("token_ids").BeginArray();
  for (const SampledToken& token : tokens) json.Integer(token.token);
  json.EndArray();
}

}  // namespace levin
