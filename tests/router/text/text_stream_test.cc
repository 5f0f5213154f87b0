#include "router/text/text_stream.h"

#include <gtest/gtest.h>

#include "tests/router/text/byte_tokenizer.h"

namespace levin {
namespace {

using levin::testing::TokenizerFolder;

class TextStreamTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.Add("<special>", {"special"});
    auto loaded = folder_.Load();
    ASSERT_TRUE(loaded) << loaded.error().message();
    tokenizer_.emplace(*std::move(loaded));
  }

  // One byte a token: the demo's first 256 ids.
  static TokenId Byte(char c) { return static_cast<unsigned char>(c); }

  // What each byte brought out, with '.' for nothing; "!STOP" and the flushed rest behind '|'.
  std::string Trace(TextStreamOptions options, std::string_view text, size_t unchecked = 0) {
    TextStream stream(*tokenizer_, std::move(options));
    std::string trace;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto piece = stream.Push(Byte(text[i]), i >= unchecked);
      trace += piece.text.empty() ? "." : piece.text;
      if (piece.stopped) return trace + "!" + piece.stop_string + "|" + stream.Flush();
    }
    return trace + "|" + stream.Flush();
  }

  TokenizerFolder folder_;
  std::optional<Tokenizer> tokenizer_;
};

TEST_F(TextStreamTest, HoldsOnlyWhatMayBecomeAStopString) {
  EXPECT_EQ(Trace({{"stop"}}, "a st b"), "a ..st b|");
  EXPECT_EQ(Trace({{"stop"}}, "ststo"), "..st..|sto");
  EXPECT_EQ(Trace({{"stop"}}, "a stop b"), "a ....!stop|");
  EXPECT_EQ(Trace({{"aab"}}, "aaab"), "..a.!aab|");
  EXPECT_EQ(Trace({}, "stop"), "stop|");
}

TEST_F(TextStreamTest, TakesTheStopStringThatEndsFirstAndOfThoseTheLongest) {
  EXPECT_EQ(Trace({{"bcd", "c"}}, "abcd"), "a.b!c|");
  EXPECT_EQ(Trace({{"c", "bc"}}, "abcd"), "a..!bc|");
}

TEST_F(TextStreamTest, CanShowTheStopString) {
  TextStreamOptions options{{"bc"}};
  options.include_stop = true;
  EXPECT_EQ(Trace(options, "abcd"), "a.bc!bc|");
}

TEST_F(TextStreamTest, PassesOverStopStringsThatEndBeforeTheLeastLength) {
  EXPECT_EQ(Trace({{"bc"}}, "abcbc", 3), "a.bc..!bc|");
  EXPECT_EQ(Trace({{"bc"}}, "abcd", 2), "a..!bc|");  // ends in a checked token
  EXPECT_EQ(Trace({{"aa"}}, "aaab", 2), ".a.!aa|");
  EXPECT_EQ(Trace({{"aa"}}, "aab", 2),
            ".a"
            "ab|");
}

TEST_F(TextStreamTest, FindsAStopStringInsideOneToken) {
  const auto hello = tokenizer_->Encode("Before", SpecialTokens::kPlainText);
  ASSERT_EQ(hello.size(), 1u);
  TextStream stream(*tokenizer_, {{"ef"}});
  const auto piece = stream.Push(hello[0]);
  EXPECT_EQ(piece.text, "B");
  EXPECT_TRUE(piece.stopped);
  EXPECT_EQ(stream.Push(Byte('x')).text, "");
}

TEST_F(TextStreamTest, StopStringsMayHaveCharactersOfSeveralBytes) {
  EXPECT_EQ(Trace({{"\xE5\xA5\xBD"}}, "\xE5\xA5\xBDx"), "...!\xE5\xA5\xBD|");
  EXPECT_EQ(Trace({{"\xC3\xA9z"}}, "\xC3\xA9y"), "..\xC3\xA9y|");
}

TEST_F(TextStreamTest, BadBytesAreReplacedAtOnceAndUnfinishedOnesDropped) {
  EXPECT_EQ(Trace({},
                  "\xE2\x82"
                  "A"),
            "..\xEF\xBF\xBD"
            "A|");
  EXPECT_EQ(Trace({}, "\xED\xA0\x80"), ".\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD|");
  EXPECT_EQ(Trace({}, "\xF0\x9F\x9A"), "...|");
}

TEST_F(TextStreamTest, SpecialTokensTravelBesideTheText) {
  TextStream hidden(*tokenizer_, {{"xyz"}});
  EXPECT_TRUE(hidden.Push(Byte('x')).specials.empty());
  EXPECT_TRUE(hidden.Push(2000).specials.empty());  // the x before it is held
  const auto piece = hidden.Push(Byte('-'));
  EXPECT_EQ(piece.text, "x-");
  ASSERT_EQ(piece.specials.size(), 1u);
  EXPECT_EQ(piece.specials[0].id, 2000);
  EXPECT_EQ(piece.specials[0].at, 1u);

  TextStreamOptions options;
  options.skip_special_tokens = false;
  TextStream shown(*tokenizer_, options);
  const auto special = shown.Push(2000);
  EXPECT_EQ(special.text, "<special>");
  EXPECT_EQ(special.specials.size(), 1u);
  EXPECT_EQ(shown.PushHidden(2000).text, "");
}

TEST_F(TextStreamTest, ACharacterIsCompletedAcrossAHiddenToken) {
  TextStream stream(*tokenizer_, {});
  EXPECT_EQ(stream.Push(Byte('\xC3')).text, "");
  EXPECT_EQ(stream.Push(2000).text, "");
  EXPECT_EQ(stream.Push(Byte('\xA9')).text, "\xC3\xA9");
}

TEST_F(TextStreamTest, FlushGivesTheHeldSpecialsToo) {
  TextStream stream(*tokenizer_, {{"ab"}});
  stream.Push(Byte('a'));
  stream.Push(2000);
  const auto rest = stream.FlushPiece();
  EXPECT_EQ(rest.text, "a");
  ASSERT_EQ(rest.specials.size(), 1u);
  EXPECT_EQ(rest.specials[0].at, 1u);
}

}  // namespace
}  // namespace levin
