#include "worker/sample/philox.h"

#include <gtest/gtest.h>

#include "worker/sample/gumbel.h"

namespace levin {
namespace {

using Words = std::array<uint32_t, 4>;

TEST(PhiloxTest, GivesThePublishedKnownAnswers) {  // kat_vectors of Random123
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(GumbelTest, NoiseIsAFunctionOfSeedIndexAndTokenAlone) {
  const double noise = GumbelNoise(7, 3, 11);
  EXPECT_EQ(GumbelNoise(7, 3, 11), noise);
  EXPECT_NE(GumbelNoise(8, 3, 11), noise);
  EXPECT_NE(GumbelNoise(7, 4, 11), noise);
  EXPECT_NE(GumbelNoise(7, 3, 12), noise);
  EXPECT_NE(GumbelNoise(7 + (uint64_t{1} << 40), 3, 11), noise);
  EXPECT_NE(GumbelNoise(7, 3 + (int64_t{1} << 33), 11), noise);
}

TEST(GumbelTest, NoiseHasTheMeanAndSpreadOfAGumbelAndStaysBelowItsBound) {
  double sum = 0, squares = 0;
  constexpr int kCount = 200'000;
  for (int i = 0; i < kCount; ++i) {
    const double noise = GumbelNoise(5, i / 100, i % 100);
    ASSERT_LT(noise, kGumbelMax);
    sum += noise;
    squares += noise * noise;
  }
  const double mean = sum / kCount;
  EXPECT_NEAR(mean, 0.5772, 0.015);                           // Euler's constant
  EXPECT_NEAR(squares / kCount - mean * mean, 1.6449, 0.03);  // pi^2 / 6
}

}  // namespace
}  // namespace levin
