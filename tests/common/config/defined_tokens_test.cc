#include "common/config/defined_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

namespace levin {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class DefinedTokensTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::path(::testing::TempDir()) / "levin_defined_tokens";
    fs::remove_all(dir_);
    fs::create_directories(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }
  void Write(std::string_view text) { std::ofstream(dir_ / "tokenizer.json") << text; }
  std::string ErrorOf(int32_t vocab) {
    const Result<TokenizerFacts> facts = DefinedTokens(dir_, vocab);
    return facts ? "" : facts.error().message();
  }

  fs::path dir_;
};

TEST_F(DefinedTokensTest, OfTheDemoModelAreItsVocabularyAndAddedTokens) {
  const fs::path demo = fs::path(LEVIN_SOURCE_DIR) / "models/levin-demo";
  const Result<TokenizerFacts> facts = DefinedTokens(demo, 1536);
  ASSERT_TRUE(facts) << facts.error().message();
  EXPECT_EQ(facts->defined.size(), 1536u);
  EXPECT_EQ(std::count(facts->defined.begin(), facts->defined.end(), true), 1508);
  EXPECT_NE(facts->hash, 0u);
}

TEST_F(DefinedTokensTest, AreAllWhereThereIsNoTokenizer) {
  const Result<TokenizerFacts> facts = DefinedTokens(dir_, 5);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->defined, std::vector<bool>(5, true));
  EXPECT_EQ(facts->hash, 0u);
}

TEST_F(DefinedTokensTest, ComeFromBothLists) {
  Write(R"({"model":{"vocab":{"a":0,"b":3}},"added_tokens":[{"id":4,"content":"<x>"}]})");
  const Result<TokenizerFacts> facts = DefinedTokens(dir_, 6);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->defined, (std::vector<bool>{true, false, false, true, true, false}));
  Write(R"({"model":{"vocab":{"a":0,"b":3}},"added_tokens":[{"id":4,"content":"<y>"}]})");
  EXPECT_NE(DefinedTokens(dir_, 6)->hash, facts->hash) << "the hash sees every byte";
}

TEST_F(DefinedTokensTest, IdsOutsideTheVocabularyAreNamed) {
  Write(R"({"model":{"vocab":{"a":0,"far":6}}})");
  EXPECT_THAT(ErrorOf(6), AllOf(HasSubstr("\"far\""), HasSubstr("6"), HasSubstr("0 to 5")));
  Write(R"({"model":{"vocab":{"a":-1}}})");
  EXPECT_THAT(ErrorOf(6), HasSubstr("-1"));
  Write(R"({"model":{"vocab":{"a":0}},"added_tokens":[{"id":"7"}]})");
  EXPECT_THAT(ErrorOf(6), HasSubstr("\"7\""));
}

TEST_F(DefinedTokensTest, BrokenFilesAreRefusedByName) {
  for (const char* text : {"", "{", "[]", "{}", R"({"model":3})", R"({"model":{"vocab":[]}})",
                           R"({"model":{"vocab":{}},"added_tokens":{}})",
                           R"({"model":{"vocab":{}},"added_tokens":[5]})"}) {
    Write(text);
    EXPECT_THAT(ErrorOf(6), HasSubstr("tokenizer.json")) << text;
  }
}

}  // namespace
}  // namespace levin
