#include "router/api/chat_format.h"

#include <utility>

#include "router/api/json_writer.h"
#include "router/api/logprobs_json.h"

namespace levin {
namespace {

constexpr char kChunk[] = "chat.completion.chunk";

class ChatFormat final : public ReplyFormat {
 public:
  ChatFormat(ReplyHead head, const Tokenizer& tokenizer, bool include_reasoning)
      : head_(std::move(head)),
        spelling_{tokenizer, head_.shape.return_tokens_as_token_ids},
        include_reasoning_(include_reasoning) {}

  std::string OpeningChunk(int32_t choice, const ReplyUsage* usage) override {
    JsonWriter json;
    json.BeginObject();
    WriteHead(json, head_, kChunk);
    if (head_.shape.return_token_ids) WriteIds(json, "prompt_token_ids", head_.prompt_ids[choice]);
    json.Key("choices").BeginArray().BeginObject().Field("index", choice);
    json.Key("delta").BeginObject().Field("role", "assistant").Field("content", "").EndObject();
    json.NullField("logprobs").NullField("finish_reason");
    return CloseChunk(json, usage);
  }

  std::string Chunk(const ChunkParts& parts) override {
    JsonWriter json;
    json.BeginObject();
    WriteHead(json, head_, kChunk);
    json.Key("choices").BeginArray().BeginObject().Field("index", parts.choice);
    json.Key("delta").BeginObject();
    WriteDelta(json, parts);
    json.EndObject();
    WriteLogprobs(json, parts.tokens);
    WriteFinish(json, parts.finish);
    if (head_.shape.return_token_ids) WriteTokenIds(json, parts.tokens);
    return CloseChunk(json, parts.usage);
  }

  std::string UsageChunk(const ReplyUsage& usage) override {
    return MakeUsageChunk(head_, kChunk, usage);
  }

  std::string Whole(std::span<const ChoiceResult> choices, const ReplyUsage& usage) override {
    JsonWriter json;
    json.BeginObject();
    WriteHead(json, head_, "chat.completion");
    json.Key("choices").BeginArray();
    for (size_t i = 0; i < choices.size(); ++i) WriteChoice(json, i, choices[i]);
    json.EndArray();
    WriteUsage(json, usage);
    json.Field("system_fingerprint", head_.fingerprint);
    json.NullField("service_tier").NullField("prompt_logprobs");
    if (head_.shape.return_token_ids) WriteIds(json, "prompt_token_ids", head_.prompt_ids[0]);
    json.EndObject();
    return json.Take();
  }

 private:
  static void WriteDelta(JsonWriter& json, const ChunkParts& parts) {
    if (parts.delta != nullptr) {
      const bool reasoning = parts.delta->kind == TextKind::kReasoning;
      json.Field(reasoning ? "reasoning_content" : "content", parts.delta->text);
    } else if (parts.tool_start != nullptr) {
      json.Key("tool_calls").BeginArray().BeginObject().Field("index", parts.tool_start->index);
      json.Field("id", parts.tool_start->id).Field("type", "function").Key("function");
      json.BeginObject().Field("name", parts.tool_start->name).Field("arguments", "").EndObject();
      json.EndObject().EndArray();
    } else if (parts.tool_args != nullptr) {
      json.Key("tool_calls").BeginArray().BeginObject().Field("index", parts.tool_args->index);
      json.Key("function").BeginObject().Field("arguments", parts.tool_args->fragment).EndObject();
      json.EndObject().EndArray();
    }
  }

  void WriteLogprobs(JsonWriter& json, std::span<const SampledToken> tokens) {
    if (!head_.shape.logprobs || tokens.empty()) {
      json.NullField("logprobs");
      return;
    }
    json.Key("logprobs");
    WriteChatLogprobs(json, tokens, spelling_);
  }

  void WriteChoice(JsonWriter& json, size_t index, const ChoiceResult& choice) {
    json.BeginObject().Field("index", static_cast<int64_t>(index));
    json.Key("message").BeginObject().Field("role", "assistant");
    if (choice.finish.content_is_null) {
      json.NullField("content");
    } else {
      json.Field("content", choice.content);
    }
    json.NullField("refusal");
    if (include_reasoning_ && !choice.reasoning.empty()) {
      json.Field("reasoning_content", choice.reasoning);
    }
    WriteToolCalls(json, choice.tool_calls);
    json.EndObject();
    WriteLogprobs(json, choice.tokens);
    WriteFinish(json, &choice.finish);
    if (head_.shape.return_token_ids) WriteTokenIds(json, choice.tokens);
    json.EndObject();
  }

  static void WriteToolCalls(JsonWriter& json, std::span<const ToolCallResult> calls) {
    if (calls.empty()) return;
    json.Key("tool_calls").BeginArray();
    for (const ToolCallResult& call : calls) {
      json.BeginObject().Field("id", call.id).Field("type", "function").Key("function");
      json.BeginObject().Field("name", call.name).Field("arguments", call.arguments).EndObject();
      json.EndObject();
    }
    json.EndArray();
  }

  const ReplyHead head_;
  const TokenSpelling spelling_;
  const bool include_reasoning_;
};

}  // namespace

std::unique_ptr<ReplyFormat> MakeChatFormat(ReplyHead head, const Tokenizer& tokenizer,
                                            bool include_reasoning) {
  return std::make_unique<ChatFormat>(std::move(head), tokenizer, include_reasoning);
}

}  // namespace levin
