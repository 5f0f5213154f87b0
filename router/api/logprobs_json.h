// Log-probabilities as the two endpoints spell them (api.md 4.6, 6).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "common/inference/generation.h"
#include "router/text/tokenizer.h"
#include "router/text/utf8.h"

namespace levin {

class JsonWriter;

struct TokenSpelling {
  const Tokenizer& tokenizer;
  bool as_ids = false;  // "token_id:N"

  std::string Of(TokenId token) const;
};

// JSON has no -infinity, and a client must get a number.
double FiniteLogprob(float logprob);

// {"content":[...],"refusal":null}
void WriteChatLogprobs(JsonWriter& json, std::span<const SampledToken> tokens,
                       const TokenSpelling& spelling);

// Counts code points of the shown text, token by token.
class TextOffset final {
 public:
  // Whole characters before this point.
  int64_t characters() const { return characters_; }
  void Add(std::string_view bytes);

 private:
  Utf8Assembler assembler_;
  int64_t characters_ = 0;
};

// {"tokens","token_logprobs","top_logprobs","text_offset"}: four arrays of equal length. `offset`
// moves on past the tokens; special ones count nothing where they are hidden.
void WriteCompletionLogprobs(JsonWriter& json, std::span<const SampledToken> tokens,
                             const TokenSpelling& spelling, bool hide_special, TextOffset& offset);

}  // namespace levin
