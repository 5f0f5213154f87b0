#include "router/api/logprobs_json.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <vector>

#include "router/api/json_writer.h"

namespace levin {
namespace {

constexpr double kLeastLogprob = -9999.0;

void WriteEntry(JsonWriter& json, TokenId token, float logprob, const TokenSpelling& spelling) {
  json.Field("token", spelling.Of(token)).Key("logprob").Number(FiniteLogprob(logprob));
  json.Key("bytes").BeginArray();
  for (char byte : spelling.tokenizer.Bytes(token)) json.Integer(static_cast<unsigned char>(byte));
  json.EndArray();
}

// The k best and the drawn one, best first.
std::vector<TopLogprob> WithDrawn(const SampledToken& drawn) {
  std::vector<TopLogprob> all = drawn.top;
  const bool there = std::any_of(all.begin(), all.end(),
                                 [&](const TopLogprob& one) { return one.token == drawn.token; });
  if (!there) {
    const auto behind = std::find_if(
        all.begin(), all.end(), [&](const TopLogprob& one) { return one.logprob < drawn.logprob; });
    all.insert(behind, {drawn.token, drawn.logprob});
  }
  return all;
}

}  // namespace

std::string TokenSpelling::Of(TokenId token) const {
  if (as_ids) return "token_id:" + std::to_string(token);
  return std::string(tokenizer.Bytes(token));
}

double FiniteLogprob(float logprob) {
  return std::isfinite(logprob) ? static_cast<double>(logprob) : kLeastLogprob;
}

void WriteChatLogprobs(JsonWriter& json, std::span<const SampledToken> tokens,
                       const TokenSpelling& spelling) {
  json.BeginObject().Key("content").BeginArray();
  for (const SampledToken& token : tokens) {
    json.BeginObject();
    WriteEntry(json, token.token, token.logprob, spelling);
    json.Key("top_logprobs").BeginArray();
    for (const TopLogprob& top : token.top) {
      json.BeginObject();
      WriteEntry(json, top.token, top.logprob, spelling);
      json.EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray().NullField("refusal").EndObject();
}

void TextOffset::Add(std::string_view bytes) {
  std::string whole;
  assembler_.Push(bytes, whole);
  characters_ += std::count_if(whole.begin(), whole.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;  // not a continuation byte
  });
}

void WriteCompletionLogprobs(JsonWriter& json, std::span<const SampledToken> tokens,
                             const TokenSpelling& spelling, bool hide_special, TextOffset& offset) {
  json.BeginObject().Key("tokens").BeginArray();
  for (const SampledToken& token : tokens) json.String(spelling.Of(token.token));
  json.EndArray().Key("token_logprobs").BeginArray();
  for (const SampledToken& token : tokens) json.Number(FiniteLogprob(token.logprob));
  json.EndArray().Key("top_logprobs").BeginArray();
  for (const SampledToken& token : tokens) {
    // Different ids may be spelled alike: the better one, which comes first, keeps the key, so that
    // "the drawn one is the maximum of the map" stays right.
    std::unordered_set<std::string> seen;
    json.BeginObject();
    for (const TopLogprob& top : WithDrawn(token)) {
      std::string text = spelling.Of(top.token);
      if (!IsValidUtf8(text)) text = "\xEF\xBF\xBD";
      if (seen.insert(text).second) json.Key(text).Number(FiniteLogprob(top.logprob));
    }
    json.EndObject();
  }
  json.EndArray().Key("text_offset").BeginArray();
  for (const SampledToken& token : tokens) {
    json.Integer(offset.characters());
    const bool hidden = hide_special && spelling.tokenizer.IsSpecial(token.token);
    if (!hidden) offset.Add(spelling.tokenizer.Bytes(token.token));
  }
  json.EndArray().EndObject();
}

}  // namespace levin
