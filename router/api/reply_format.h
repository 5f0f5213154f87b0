// How the events of one reply are spelled on an endpoint. Chat and completions are the two.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "router/api/openai_types.h"
#include "router/inference/reply_event.h"

namespace levin {

class JsonWriter;

// What stands in every object of one reply.
struct ReplyHead {
  std::string id;
  std::string model;
  std::string fingerprint;
  int64_t created = 0;  // unix seconds
  ReplyShape shape;
  std::vector<std::vector<TokenId>> prompt_ids;  // [choices] where return_token_ids was asked
};

struct ToolCallResult {
  std::string id, name, arguments;
};

// The joined events of one choice.
struct ChoiceResult {
  std::string content, reasoning;
  std::vector<ToolCallResult> tool_calls;
  std::vector<SampledToken> tokens;
  ChoiceFinishedEvent finish;

  void Add(ReplyEvent event);  // those that hold no part of the choice are ignored
};

// One chunk of a stream: what is set, of the same choice.
struct ChunkParts {
  int32_t choice = 0;
  const DeltaEvent* delta = nullptr;
  const ToolStartEvent* tool_start = nullptr;
  const ToolArgsEvent* tool_args = nullptr;
  const ChoiceFinishedEvent* finish = nullptr;
  std::vector<SampledToken> tokens = {};  // of all of them
  const ReplyUsage* usage = nullptr;      // continuous_usage_stats
};

// One thread at a time: a stream's place in its text is kept.
class ReplyFormat {
 public:
  virtual ~ReplyFormat() = default;
  // What opens a choice at its first token; "" where nothing does.
  virtual std::string OpeningChunk(int32_t choice, const ReplyUsage* usage) = 0;
  virtual std::string Chunk(const ChunkParts& parts) = 0;
  virtual std::string UsageChunk(const ReplyUsage& usage) = 0;
  virtual std::string Whole(std::span<const ChoiceResult> choices, const ReplyUsage& usage) = 0;
};

// ---- what both formats share

std::string_view NameOf(ReplyFinish reason);
// id, object, created, model.
void WriteHead(JsonWriter& json, const ReplyHead& head, std::string_view object);
void WriteUsage(JsonWriter& json, const ReplyUsage& usage);
// Ends the choice, the choices and the chunk; usage (nullptr: none) goes between.
std::string CloseChunk(JsonWriter& json, const ReplyUsage* usage);
// The chunk without choices that ends a stream whose client asked for usage.
std::string MakeUsageChunk(const ReplyHead& head, std::string_view object, const ReplyUsage& usage);
// finish_reason and stop_reason; without `finish`: null, and no stop_reason.
void WriteFinish(JsonWriter& json, const ChoiceFinishedEvent* finish);
void WriteIds(JsonWriter& json, std::string_view key, std::span<const TokenId> ids);
void WriteTokenIds(JsonWriter& json, std::span<const SampledToken> tokens);

}  // namespace levin
