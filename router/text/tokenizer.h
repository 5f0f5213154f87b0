// Bytes <-> ids, exactly as the checkpoint's tokenizer.json says (text.md 2 and 3).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/types.h"

namespace levin {

// Whether the spellings of special tokens in a text are those tokens. Added tokens that are not
// special are ordinary vocabulary and found either way.
enum class SpecialTokens { kPlainText, kRecognised };

// A part of a rendered prompt. Structure comes from scaffold alone: content, whatever it spells,
// never becomes a special token (text.md 3.2).
struct Segment {
  std::string text;
  bool scaffold = false;
};

// Immutable after Load; any thread may call the const methods at the same time. Copies are cheap
// and share everything.
class Tokenizer final {
 public:
  // Reads tokenizer.json and, where present, tokenizer_config.json. A rule of tokenizer.json that
  // is not known is INVALID_ARGUMENT and names it.
  static Result<Tokenizer> Load(const std::filesystem::path& model_dir);

  // `text` is valid UTF-8. Time is near linear in its length whatever it holds.
  std::vector<TokenId> Encode(std::string_view text, SpecialTokens specials) const;

  // The segments are one text: words go across their borders. A special token is recognised only
  // where all of its bytes are scaffold.
  std::vector<TokenId> EncodeSegments(std::span<const Segment> segments) const;

  // Raw bytes; may begin or end inside a character. "" for an undefined id.
  std::string_view Bytes(TokenId id) const;
  bool IsDefined(TokenId id) const;
  bool IsSpecial(TokenId id) const;
  // The ids that the tokenizer defines lie in [0, vocab_size), perhaps with holes.
  int32_t vocab_size() const;
  // No token stands for more bytes of a text: n bytes become at least n / longest_token_bytes()
  // tokens, rounded up. Above 0; SIZE_MAX where a token takes any whitespace beside it along.
  size_t longest_token_bytes() const;
  // The id of that spelling of an added token.
  std::optional<TokenId> FindAdded(std::string_view content) const;

  // tokenizer_config.json: its eos_token looked up here, the file itself ("" without one), and
  // its chat template ("" if it has none).
  std::optional<TokenId> eos_token() const;
  const std::string& config_json() const;
  const std::string& chat_template() const;

 private:
  struct Rules;
  explicit Tokenizer(std::shared_ptr<const Rules> rules) : rules_(std::move(rules)) {}

  std::shared_ptr<const Rules> rules_;
};

}  // namespace levin
