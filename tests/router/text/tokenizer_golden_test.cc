#include <fstream>
#include <iostream>
#include <unordered_map>

#include "router/text/text_stream.h"
#include "router/text/tokenizer.h"
#include "router/text/utf8.h"
#include "tests/router/text/json_lines.h"
#include "tests/router/text/vendor_tokenizer.h"

namespace levin {
namespace {

using namespace levin::testing;

std::string Unhex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

// Every line with special tokens recognised; as plain text the ids of vectors_plain.jsonl where the
// text stands there, else the same.
TEST(TokenizerGolden, EveryVectorGivesItsIds) {
  size_t cases = 0;
  for (const auto& path : GoldenFiles("tokenizer", "vectors.jsonl")) {
    const auto lines = ReadJsonLines(path);
    NEED_VENDOR_TOKENIZER(lines.size());
    std::unordered_map<std::string, std::vector<TokenId>> plain;
    for (const auto& line : ReadJsonLines(path.parent_path() / "vectors_plain.jsonl")) {
      plain[Text(line.at("text"))] = Ids(line.at("ids"));
    }
    ASSERT_FALSE(plain.empty());
    for (const auto& line : lines) {
      const std::string text = Text(line.at("text"));
      const auto ids = Ids(line.at("ids"));
      ASSERT_EQ(vendor->Encode(text, SpecialTokens::kRecognised), ids)
          << boost::json::serialize(line.at("text")) << " of group " << line.at("group");
      const auto found = plain.find(text);
      ASSERT_EQ(vendor->Encode(text, SpecialTokens::kPlainText),
                found == plain.end() ? ids : found->second)
          << "as plain text: " << boost::json::serialize(line.at("text"));
      ++cases;
    }
  }
  std::cout << cases << " vectors, each recognised and plain\n";
  EXPECT_GT(cases, 0u);
}

TEST(TokenizerGolden, DecodingShowsEachCharacterWithItsLastByte) {
  size_t cases = 0;
  for (const auto& path : GoldenFiles("tokenizer", "decode.jsonl")) {
    const auto lines = ReadJsonLines(path);
    NEED_VENDOR_TOKENIZER(lines.size());
    for (const auto& line : lines) {
      TextStreamOptions options;
      options.skip_special_tokens = line.at("skip_special_tokens").as_bool();
      TextStream stream(*vendor, options);
      std::string bytes, joined;
      const auto ids = Ids(line.at("ids"));
      const auto& pieces = line.at("pieces").as_array();
      ASSERT_EQ(pieces.size(), ids.size());
      for (size_t i = 0; i < ids.size(); ++i) {
        if (!options.skip_special_tokens || !vendor->IsSpecial(ids[i]))
          bytes += vendor->Bytes(ids[i]);
        const std::string text = stream.Push(ids[i]).text;
        ASSERT_EQ(text, Text(pieces[i]))
            << "token " << i << " of " << boost::json::serialize(line.at("ids"));
        joined += text;
      }
      ASSERT_EQ(bytes, Unhex(Text(line.at("bytes"))));
      ASSERT_EQ(std::string(stream.unfinished()), Unhex(Text(line.at("dropped_at_end"))));
      joined += stream.Flush();
      ASSERT_EQ(joined, Text(line.at("text")));
      ++cases;
    }
  }
  std::cout << cases << " decoded sequences\n";
  EXPECT_GT(cases, 0u);
}

// encode(decode(id)) = id wherever the bytes are text; the vocabulary says so of itself.
TEST(TokenizerGolden, TokensThatAreTextDecodeToTextAndBack) {
  NEED_VENDOR_TOKENIZER(200000);
  int32_t other = 0;
  for (TokenId id = 0; id < vendor->vocab_size(); ++id) {
    const std::string_view bytes = vendor->Bytes(id);
    if (!IsValidUtf8(bytes)) continue;
    std::string back;
    for (const TokenId part : vendor->Encode(bytes, SpecialTokens::kRecognised))
      back += vendor->Bytes(part);
    if (back != bytes) ++other;  // entries that are not in NFC
  }
  EXPECT_LT(other, 50);
  EXPECT_EQ(vendor->vocab_size(), 200036);
  EXPECT_EQ(vendor->eos_token(), 200020);
  EXPECT_TRUE(vendor->IsSpecial(200022));
  EXPECT_FALSE(vendor->IsSpecial(97));
  EXPECT_FALSE(vendor->IsDefined(200036));
  EXPECT_FALSE(vendor->IsDefined(-1));
}

TEST(TokenizerDemo, ExamplesDecodeToTheirText) {
  const std::filesystem::path dir = std::filesystem::path(LEVIN_SOURCE_DIR) / "models/levin-demo";
  Result<Tokenizer> demo = Tokenizer::Load(dir);
  ASSERT_TRUE(demo) << demo.error().message();
  EXPECT_EQ(demo->vocab_size(), 1508);
  ASSERT_TRUE(demo->eos_token());
  const auto examples = ParseJson(ReadAll(dir / "examples.json"));
  size_t cases = 0;
  for (const auto& example : examples.at("cases").as_array()) {
    // The prompt is text with special tokens: both ways round.
    const auto prompt = Ids(example.at("prompt_ids"));
    std::string text;
    for (const TokenId id : prompt) text += demo->Bytes(id);
    EXPECT_EQ(demo->Encode(text, SpecialTokens::kRecognised), prompt) << text;
    TextStream stream(*demo, {});
    std::string output;
    for (const TokenId id : Ids(example.at("output_ids"))) {
      output += id == demo->eos_token() ? stream.PushHidden(id).text : stream.Push(id).text;
    }
    output += stream.Flush();
    EXPECT_EQ(output, Text(example.at("output_text")));
    ++cases;
  }
  std::cout << cases << " examples of the demo model\n";
  EXPECT_GT(cases, 0u);
}

}  // namespace
}  // namespace levin
