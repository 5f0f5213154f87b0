#include "router/inference/api_keys.h"

#include <gtest/gtest.h>

namespace levin {
namespace {

TEST(ApiKeysTest, EverythingIsAllowedWhileNoKeyIsSet) {
  const ApiKeys keys({});
  EXPECT_FALSE(keys.required());
  EXPECT_TRUE(keys.Allows(""));
  EXPECT_TRUE(keys.Allows("Bearer "));  // lm-eval without a key sends this
  EXPECT_TRUE(keys.Allows("Bearer whatever"));
}

TEST(ApiKeysTest, AnEmptyKeyIsNoKey) { EXPECT_FALSE(ApiKeys({""}).required()); }

TEST(ApiKeysTest, EachKeyOpensAndNothingElseDoes) {
  const ApiKeys keys({"alpha", "beta"});
  EXPECT_TRUE(keys.Allows("Bearer alpha"));
  EXPECT_TRUE(keys.Allows("bearer beta"));
  EXPECT_TRUE(keys.Allows("BEARER  beta "));
  EXPECT_FALSE(keys.Allows(""));
  EXPECT_FALSE(keys.Allows("Bearer"));
  EXPECT_FALSE(keys.Allows("Bearer "));
  EXPECT_FALSE(keys.Allows("Bearer alph"));
  EXPECT_FALSE(keys.Allows("Bearer alphaa"));
  EXPECT_FALSE(keys.Allows("Basic alpha"));
  EXPECT_FALSE(keys.Allows("alpha"));
}

}  // namespace
}  // namespace levin
