// Any text, through the demo's tokenizer: what comes out decodes to the text in NFC, is the same
// under other borders of segments, and no content becomes a special token.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "router/text/char_table.h"
#include "router/text/nfc.h"
#include "router/text/text_stream.h"
#include "router/text/tokenizer.h"
#include "router/text/utf8.h"
#include "tests/fuzz/require.h"

namespace levin {
namespace {

using levin::testing::Require;

const Tokenizer& Demo() {
  static const auto& tokenizer = *new Result<Tokenizer>(
      Tokenizer::Load(std::filesystem::path(LEVIN_SOURCE_DIR) / "models/levin-demo"));
  Require(tokenizer.has_value());
  return *tokenizer;
}

std::string Nfc(const std::string& text) {
  static const auto& table = *new CharTable();
  std::string storage;
  return std::string(ToNfc(text, table, storage));
}

std::string Decode(const std::vector<TokenId>& ids) {
  TextStream stream(Demo(), {.stop = {}, .skip_special_tokens = false, .include_stop = false});
  std::string text, bytes;
  for (const TokenId id : ids) {
    Require(Demo().IsDefined(id));
    bytes += Demo().Bytes(id);
    text += stream.Push(id).text;
  }
  Require(text + stream.Flush() == bytes);
  return bytes;
}

void Check(size_t cut, const std::string& text) {
  const auto plain = Demo().Encode(text, SpecialTokens::kPlainText);
  Require(Decode(plain) == Nfc(text));
  for (const TokenId id : plain) Require(!Demo().IsSpecial(id));
  Decode(Demo().Encode(text, SpecialTokens::kRecognised));

  while (cut > 0 && cut < text.size() && (text[cut] & 0xC0) == 0x80) --cut;
  const std::string front = text.substr(0, cut), back = text.substr(std::min(cut, text.size()));
  const std::vector<Segment> content = {{front, false}, {back, false}};
  Require(Demo().EncodeSegments(content) == plain);
  const std::vector<Segment> scaffold = {{front, true}, {back, true}};
  Require(Demo().EncodeSegments(scaffold) == Demo().Encode(text, SpecialTokens::kRecognised));
}

}  // namespace
}  // namespace levin

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  levin::Utf8Assembler characters;
  std::string text;
  characters.Push({reinterpret_cast<const char*>(data) + 1, size - 1}, text);
  levin::testing::Require(levin::IsValidUtf8(text));
  levin::Check(data[0] % size, text);
  return 0;
}
