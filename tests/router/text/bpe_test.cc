#include "router/text/bpe.h"

#include <gtest/gtest.h>

#include <random>

#include "router/text/nfc.h"
#include "router/text/pre_tokenizer.h"
#include "router/text/tokenizer_file.h"
#include "router/text/utf8.h"
#include "tests/support/golden.h"

namespace levin {
namespace {

using levin::testing::VendorFile;

// Vocabulary and merges of a file, with the two ways to encode.
struct Loaded {
  explicit Loaded(const TokenizerFile& file)
      : vocabulary(file.vocabulary), bpe(vocabulary, file.merges, file.ignore_merges) {}
  Vocabulary vocabulary;
  Bpe bpe;
};

std::filesystem::path DemoFile() {
  return std::filesystem::path(LEVIN_SOURCE_DIR) / "models/levin-demo/tokenizer.json";
}

// Pieces that are hard to split: chains of tokens cut anywhere, from few and from many tokens.
std::string RandomPiece(const Vocabulary& vocabulary, std::mt19937& random) {
  const auto below = [&random](size_t n) { return static_cast<size_t>(random() % n); };
  const size_t alphabet = below(3) == 0 ? 8 : static_cast<size_t>(vocabulary.size());
  const size_t base = below(static_cast<size_t>(vocabulary.size()) - alphabet + 1);
  std::string piece;
  for (size_t i = below(1 + (below(10) == 0 ? 60 : 8)) + 1; i > 0; --i) {
    const std::string_view bytes = vocabulary.Bytes(static_cast<TokenId>(base + below(alphabet)));
    if (bytes.empty()) continue;
    const size_t begin = below(4) == 0 ? below(bytes.size()) : 0;
    piece += bytes.substr(begin, below(4) == 0 ? 1 + below(bytes.size()) : bytes.size());
  }
  return piece.empty() ? "x" : piece;
}

void ExpectMatchingEqualsMerging(const Loaded& loaded, int pieces, uint32_t seed) {
  std::mt19937 random(seed);
  NeighbourMemo memo;
  for (int i = 0; i < pieces; ++i) {
    const std::string piece = RandomPiece(loaded.vocabulary, random);
    std::vector<TokenId> merged, matched, remembered;
    loaded.bpe.EncodeByMerging(piece, merged);
    loaded.bpe.Encode(piece, nullptr, matched);
    loaded.bpe.Encode(piece, &memo, remembered);
    ASSERT_EQ(matched, merged) << "seed " << seed << ", piece " << i << ": "
                               << ::testing::PrintToString(piece);
    ASSERT_EQ(remembered, merged) << "seed " << seed << ", piece " << i;
  }
}

TEST(Bpe, MatchingGivesWhatMergingGivesForTheDemo) {
  const auto file = ReadTokenizerFile(DemoFile());
  ASSERT_TRUE(file) << file.error().message();
  ExpectMatchingEqualsMerging(Loaded(*file), 20000, 1);
}

TEST(Bpe, MatchingGivesWhatMergingGivesForTheVendor) {
  const auto path = VendorFile("tokenizer/m1/tokenizer.json");
  if (path.empty())
    GTEST_SKIP()
        << "SKIPPED 40000 random pieces: tokenizer/m1/tokenizer.json of MiniMax-M1 is not here";
  const auto file = ReadTokenizerFile(path);
  ASSERT_TRUE(file) << file.error().message();
  ExpectMatchingEqualsMerging(Loaded(*file), 40000, 2);
}

// A short merge list with ids out of order, a token that merging never makes, and a repeated merge.
TokenizerFile Disordered() {
  TokenizerFile file;
  for (int byte = 0; byte < 256; ++byte)
    file.vocabulary.push_back({500 + byte, std::string(1, static_cast<char>(byte))});
  const auto id = [](char c) { return 500 + static_cast<unsigned char>(c); };
  file.vocabulary.insert(file.vocabulary.end(),
                         {{9, "bc"}, {3, "ab"}, {7, "abc"}, {1, "aa"}, {2, "abcd"}});
  file.merges = {{id('b'), id('c'), 9},
                 {id('a'), id('b'), 3},
                 {3, id('c'), 7},
                 {id('a'), id('a'), 1},
                 {3, id('c'), 7}};
  return file;
}

std::vector<TokenId> Encode(const TokenizerFile& file, std::string_view piece) {
  std::vector<TokenId> ids;
  Loaded(file).bpe.Encode(piece, nullptr, ids);
  return ids;
}

TEST(Bpe, RanksDecideNotIds) {
  const TokenizerFile file = Disordered();
  EXPECT_EQ(Encode(file, "abc"),
            (std::vector<TokenId>{597, 9}));  // b+c before a+b: "abc" is never made
  EXPECT_EQ(Encode(file, "ab"), (std::vector<TokenId>{3}));
  EXPECT_EQ(Encode(file, "aaa"), (std::vector<TokenId>{1, 597}));  // the left one of equal pairs
  EXPECT_EQ(Encode(file, "aaab"), (std::vector<TokenId>{1, 3}));
  EXPECT_EQ(Encode(file, "abcd"), (std::vector<TokenId>{597, 9, 600}));
}

TEST(Bpe, IgnoreMergesTakesWholePiecesOfTheVocabulary) {
  TokenizerFile file = Disordered();
  file.ignore_merges = true;
  EXPECT_EQ(Encode(file, "abc"), (std::vector<TokenId>{7}));
  EXPECT_EQ(Encode(file, "abcd"), (std::vector<TokenId>{2}));
  EXPECT_EQ(Encode(file, "abcx"), (std::vector<TokenId>{597, 9, 620}));
}

TEST(Bpe, LongPiecesAreMergedAsShortOnesAre) {
  const Loaded loaded(Disordered());
  std::string piece;
  for (int i = 0; i < 1000; ++i) piece += "aab";
  std::vector<TokenId> ids;
  loaded.bpe.Encode(piece, nullptr, ids);
  ASSERT_EQ(ids.size(), 2000u);
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i], i % 2 == 0 ? 597 : 3);
}

TEST(Nfc, ComposesAndOrdersWhatNeedsIt) {
  const CharTable table;
  std::string storage;
  const auto nfc = [&](std::string_view text) { return std::string(ToNfc(text, table, storage)); };
  EXPECT_EQ(nfc("plain"), "plain");
  EXPECT_EQ(nfc("e\xCC\x81z"), "\xC3\xA9z");
  EXPECT_EQ(nfc("\xE2\x84\xAB"), "\xC3\x85");                // angstrom sign
  EXPECT_EQ(nfc("q\xCC\x87\xCC\xA3"), "q\xCC\xA3\xCC\x87");  // dot below before dot above
  EXPECT_EQ(nfc("\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB"), "\xED\x95\x9C");  // jamo
  EXPECT_EQ(nfc("\xE0\xA5\x98"), "\xE0\xA4\x95\xE0\xA4\xBC");  // excluded from composition
  EXPECT_EQ(nfc("\xCC\x81"
                "a"),
            "\xCC\x81"
            "a");
}

TEST(PreTokenizer, WhitespaceIsThePropertyAndNothingElse) {
  const CharTable table;
  const auto count = [&](std::string_view text) {
    size_t pieces = 0;
    for (size_t at = 0; at < text.size(); at = PreTokenEnd(text, at, table)) ++pieces;
    return pieces;
  };
  EXPECT_EQ(count("a\xC2\x85\xC2\x85"
                  "b"),
            3u);  // U+0085 is whitespace: one stays with b
  EXPECT_EQ(count("a\xE1\xA0\x8E"
                  "b"),
            2u);  // U+180E is not
  EXPECT_EQ(count("a\xEF\xBB\xBF"
                  "b"),
            2u);  // nor is U+FEFF
  EXPECT_EQ(count("1234567"), 3u);
  EXPECT_EQ(count("x \n\n  y"), 4u);
  EXPECT_EQ(count("don't DON'T don'\xC5\xBF"), 3u);
  EXPECT_EQ(count("//\n// x"), 2u);
}

}  // namespace
}  // namespace levin
