#include "router/api/completion_format.h"

#include <utility>

#include "router/api/json_writer.h"
#include "router/api/logprobs_json.h"

namespace levin {
namespace {

constexpr char kObject[] = "text_completion";

class CompletionFormat final : public ReplyFormat {
 public:
  CompletionFormat(ReplyHead head, const Tokenizer& tokenizer, std::vector<std::string> echoes,
                   bool hide_special)
      : head_(std::move(head)),
        spelling_{tokenizer, head_.shape.return_tokens_as_token_ids},
        hide_special_(hide_special) {
    for (std::string& echo : echoes) {
      Place& place = places_.emplace_back();
      place.offset.Add(echo);
      place.echo = std::move(echo);
    }
  }

  std::string OpeningChunk(int32_t, const ReplyUsage*) override { return {}; }

  std::string Chunk(const ChunkParts& parts) override {
    Place& place = places_[parts.choice];
    const std::string text =
        std::exchange(place.echo, {}) + (parts.delta == nullptr ? "" : parts.delta->text);
    JsonWriter json;
    json.BeginObject();
    WriteHead(json, head_, kObject);
    json.Key("choices").BeginArray().BeginObject().Field("index", parts.choice);
    json.Field("text", text);
    WriteLogprobs(json, parts.tokens, place);
    WriteFinish(json, parts.finish);
    if (head_.shape.return_token_ids) {
      if (!std::exchange(place.prompt_sent, true)) {
        WriteIds(json, "prompt_token_ids", head_.prompt_ids[parts.choice]);
      }
      WriteTokenIds(json, parts.tokens);
    }
    return CloseChunk(json, parts.usage);
  }

  std::string UsageChunk(const ReplyUsage& usage) override {
    return MakeUsageChunk(head_, kObject, usage);
  }

  std::string Whole(std::span<const ChoiceResult> choices, const ReplyUsage& usage) override {
    JsonWriter json;
    json.BeginObject();
    WriteHead(json, head_, kObject);
    json.Key("choices").BeginArray();
    for (size_t i = 0; i < choices.size(); ++i) WriteChoice(json, i, choices[i]);
    json.EndArray();
    WriteUsage(json, usage);
    json.Field("system_fingerprint", head_.fingerprint).EndObject();
    return json.Take();
  }

 private:
  // Of one choice.
  struct Place {
    std::string echo;  // not sent yet
    TextOffset offset;
    bool prompt_sent = false;
  };

  void WriteLogprobs(JsonWriter& json, std::span<const SampledToken> tokens, Place& place) {
    if (!head_.shape.logprobs || tokens.empty()) {
      json.NullField("logprobs");
      return;
    }
    json.Key("logprobs");
    WriteCompletionLogprobs(json, tokens, spelling_, hide_special_, place.offset);
  }

  void WriteChoice(JsonWriter& json, size_t index, const ChoiceResult& choice) {
    Place& place = places_[index];
    json.BeginObject().Field("index", static_cast<int64_t>(index));
    json.Field("text", place.echo + choice.content);
    WriteLogprobs(json, choice.tokens, place);
    WriteFinish(json, &choice.finish);
    json.NullField("prompt_logprobs");
    if (head_.shape.return_token_ids) {
      WriteIds(json, "prompt_token_ids", head_.prompt_ids[index]);
      WriteTokenIds(json, choice.tokens);
    }
    json.EndObject();
  }

  const ReplyHead head_;
  const TokenSpelling spelling_;
  const bool hide_special_;
  std::vector<Place> places_;  // [choices]
};

}  // namespace

std::unique_ptr<ReplyFormat> MakeCompletionFormat(ReplyHead head, const Tokenizer& tokenizer,
                                                  std::vector<std::string> echoes,
                                                  bool hide_special) {
  return std::make_unique<CompletionFormat>(std::move(head), tokenizer, std::move(echoes),
                                            hide_special);
}

}  // namespace levin
