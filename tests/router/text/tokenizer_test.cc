#include "router/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/router/text/byte_tokenizer.h"

namespace levin {
namespace {

using levin::testing::TokenizerFolder;
using ::testing::HasSubstr;

// Where the added tokens stand, everything else as text: "a[2000]b".
std::string Show(const Tokenizer& tokenizer, std::string_view text, SpecialTokens specials) {
  std::string shown;
  for (const TokenId id : tokenizer.Encode(text, specials)) {
    shown += id >= 2000 ? "[" + std::to_string(id) + "]" : std::string(tokenizer.Bytes(id));
  }
  return shown;
}

TEST(AddedTokens, AreFoundLeftmostAndLongest) {
  TokenizerFolder folder;
  folder.Add("<a>", {"special"});
  folder.Add("<a><b>", {"special"});
  folder.Add("b><c", {"special"});
  const auto tokenizer = folder.Load();
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  EXPECT_EQ(Show(*tokenizer, "x<a>y", SpecialTokens::kRecognised), "x[2000]y");
  EXPECT_EQ(Show(*tokenizer, "<a><b><c>", SpecialTokens::kRecognised), "[2001]<c>");
  EXPECT_EQ(Show(*tokenizer, "<<a", SpecialTokens::kRecognised), "<<a");
  EXPECT_EQ(Show(*tokenizer, "x<a>y", SpecialTokens::kPlainText), "x<a>y");
}

TEST(AddedTokens, FlagsMoveTheirBorders) {
  TokenizerFolder folder;
  folder.Add("<l>", {"lstrip"});
  folder.Add("<r>", {"rstrip"});
  folder.Add("word", {"single_word"});
  const auto tokenizer = folder.Load();
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  EXPECT_EQ(Show(*tokenizer, "a \n\xC2\xA0<l> b", SpecialTokens::kRecognised), "a[2000] b");
  EXPECT_EQ(Show(*tokenizer, "a <r> \t\xE2\x80\x89 b", SpecialTokens::kRecognised), "a [2001]b");
  EXPECT_EQ(Show(*tokenizer, "<r> <l>", SpecialTokens::kRecognised), "[2001][2000]");
  EXPECT_EQ(Show(*tokenizer, "word words aword \xC3\xA9word word.", SpecialTokens::kRecognised),
            "[2002] words aword \xC3\xA9word [2002].");
}

TEST(AddedTokens, ThoseThatAreNotSpecialAreVocabularyInAnyText) {
  TokenizerFolder folder;
  folder.Add("<plain>", {});
  folder.Add("<special>", {"special"});
  const auto tokenizer = folder.Load();
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  EXPECT_EQ(Show(*tokenizer, "<plain><special>", SpecialTokens::kPlainText), "[2000]<special>");
  EXPECT_FALSE(tokenizer->IsSpecial(2000));
  EXPECT_TRUE(tokenizer->IsSpecial(2001));
  EXPECT_FALSE(tokenizer->IsDefined(1999));
}

TEST(AddedTokens, NormalisedOnesAreFoundAfterNfc) {
  TokenizerFolder folder;
  folder.Add("caf\xC3\xA9", {"normalized"});
  folder.Add("th\xC3\xA9", {});
  const auto tokenizer = folder.Load();
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  EXPECT_EQ(Show(*tokenizer, "cafe\xCC\x81", SpecialTokens::kRecognised), "[2000]");
  EXPECT_EQ(Show(*tokenizer, "the\xCC\x81", SpecialTokens::kRecognised), "th\xC3\xA9");
}

TEST(Segments, ContentNeverBecomesStructure) {
  TokenizerFolder folder;
  folder.Add("<end>", {"special"});
  folder.Add("<begin>", {"special", "normalized"});
  const auto tokenizer = folder.Load();
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  const std::vector<std::vector<Segment>> safe = {
      {{"a ", true}, {"<end>", false}, {" b", true}},
      {{"<e", true}, {"nd>", false}},
      {{"<e", false}, {"nd>", true}},
      {{"<", true}, {"end", false}, {">", true}},
      {{"<begin>", false}},
  };
  for (const auto& segments : safe) {
    for (const TokenId id : tokenizer->EncodeSegments(segments)) EXPECT_LT(id, 2000);
  }
  const std::vector<Segment> both = {
      {"<e", true}, {"nd>", true}, {"", false}, {"<end>", false}, {"<end>", true}};
  const auto ids = tokenizer->EncodeSegments(both);
  EXPECT_EQ(ids.front(), 2000);
  EXPECT_EQ(ids.back(), 2000);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 2000), 2);
}

TEST(Segments, WordsGoAcrossTheirBorders) {
  TokenizerFolder folder;
  const auto tokenizer = folder.Load();
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  const std::vector<Segment> segments = {
      {"Hello, ", true}, {"wor", false}, {"ld\n", true}, {"\n", false}};
  EXPECT_EQ(tokenizer->EncodeSegments(segments),
            tokenizer->Encode("Hello, world\n\n", SpecialTokens::kPlainText));
}

struct BadRule {
  const char* pointer;  // JSON pointer of what is replaced
  const char* value;
  const char* named;  // what the message must name
};

class UnknownRules : public ::testing::TestWithParam<BadRule> {};

TEST_P(UnknownRules, AreStartUpErrorsThatNameThem) {
  TokenizerFolder folder;
  folder.Add("<x>", {});
  folder.Set(GetParam().pointer, boost::json::parse(GetParam().value));
  const auto tokenizer = folder.Load();
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(tokenizer.error().message(), HasSubstr(GetParam().named));
}

INSTANTIATE_TEST_SUITE_P(
    Each, UnknownRules,
    ::testing::Values(
        BadRule{"/normalizer", R"({"type":"Lowercase"})", "Lowercase"},
        BadRule{"/pre_tokenizer", R"({"type":"Metaspace"})", "Metaspace"},
        BadRule{"/pre_tokenizer/pretokenizers/0/pattern", R"({"Regex":"\\w+"})", "\\\\w+"},
        BadRule{"/pre_tokenizer/pretokenizers/0/behavior", R"("Removed")", "Removed"},
        BadRule{"/pre_tokenizer/pretokenizers/1/use_regex", "true", "use_regex"},
        BadRule{"/pre_tokenizer/pretokenizers/1/add_prefix_space", "true", "add_prefix_space"},
        BadRule{"/post_processor", R"({"type":"TemplateProcessing"})", "TemplateProcessing"},
        BadRule{"/decoder", R"({"type":"WordPiece"})", "WordPiece"},
        BadRule{"/model/type", R"("Unigram")", "Unigram"},
        BadRule{"/model/dropout", "0.1", "dropout"},
        BadRule{"/model/byte_fallback", "true", "byte_fallback"},
        BadRule{"/model/end_of_word_suffix", R"("</w>")", "</w>"},
        BadRule{"/model/surprise", "1", "surprise"},
        BadRule{"/model/merges/5", R"("x")", "merges[5]"},
        BadRule{"/model/merges/7", R"(["qqq","zzz"])", "merges[7]"},
        BadRule{"/model/vocab/A", "66", "vocab"},
        BadRule{"/truncation", R"({"max_length":5})", "truncation"},
        BadRule{"/extra", "{}", "extra"}, BadRule{"/added_tokens/0/shape", "1", "shape"},
        BadRule{"/added_tokens/0/id", "-1", "added_tokens[0].id"},
        BadRule{"/added_tokens/0/id", "65", "gives id 65 to \"<x>\""},
        BadRule{"/added_tokens/0/content", "\"\"", "added_tokens[0].content"}),
    [](const auto& info) { return "Rule" + std::to_string(info.index); });

TEST(TokenizerFiles, ThatAreNotThereOrBrokenAreErrors) {
  TokenizerFolder folder;
  const auto absent = Tokenizer::Load(folder.path() / "nowhere");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code(), Code::kNotFound);
  folder.Write("tokenizer.json", "{\"version\": \"1.0\", ");
  const auto broken = Tokenizer::Load(folder.path());
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message(), HasSubstr("is not JSON"));
}

TEST(TokenizerConfig, GivesEndTokenAndTemplate) {
  TokenizerFolder folder;
  folder.Add("<end>", {"special"});
  auto bare = folder.Load();
  ASSERT_TRUE(bare) << bare.error().message();
  EXPECT_EQ(bare->eos_token(), std::nullopt);
  EXPECT_EQ(bare->config_json(), "");
  EXPECT_EQ(bare->chat_template(), "");

  const std::string config =
      R"({"eos_token":{"content":"<end>"},"chat_template":[{"name":"tool_use","template":"T"},{"name":"default","template":"D"}]})";
  folder.Write("tokenizer_config.json", config);
  auto configured = folder.Load();
  ASSERT_TRUE(configured) << configured.error().message();
  EXPECT_EQ(configured->eos_token(), 2000);
  EXPECT_EQ(configured->config_json(), config);
  EXPECT_EQ(configured->chat_template(), "D");

  folder.Write("chat_template.jinja", "J");
  auto jinja = folder.Load();
  ASSERT_TRUE(jinja);
  EXPECT_EQ(jinja->chat_template(), "J");
}

TEST(Tokenizer, ServesManyThreadsAtOnce) {
  TokenizerFolder folder;
  const auto tokenizer = folder.Load();
  ASSERT_TRUE(tokenizer);
  const std::string text = "The quick brown fox jumps over 13 lazy dogs; caf\xC3\xA9!\n\n";
  const auto ids = tokenizer->Encode(text, SpecialTokens::kPlainText);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i)
        wrong[t] += tokenizer->Encode(text, SpecialTokens::kPlainText) != ids;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace levin
