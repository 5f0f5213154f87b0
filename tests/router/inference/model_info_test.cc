#include "router/inference/model_info.h"

#include <gtest/gtest.h>

#include "tests/support/demo_model.h"

namespace levin {
namespace {

TEST(ModelInfoTest, TheDemoIsReadFromItsFolder) {
  const auto model = testing::DemoModel();
  const ModelInfo& info = model->info();
  EXPECT_EQ(info.family, "M1");
  EXPECT_EQ(info.vocab_size, 1536);
  EXPECT_EQ(info.eos, 1492);
  EXPECT_TRUE(info.extra_stop_ids.empty());  // its only one is the end token
  EXPECT_EQ(info.defaults.temperature, 0.0);
  EXPECT_EQ(info.default_max_tokens, 512);
  EXPECT_TRUE(info.Serves("org/levin demo"));
  EXPECT_FALSE(info.Serves("levin"));
}

TEST(ModelInfoTest, NamesComeFromTheFolderWhereNoneAreGiven) {
  RouterOptions options;
  options.model = testing::DemoDir() + "/";
  const auto model = ServedModel::Load(options, 0);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ((*model)->info().names.front(), "levin-demo");
  EXPECT_TRUE((*model)->info().Serves(options.model));
}

TEST(ModelInfoTest, GenerationConfigGivesDefaultsAndExtraEnds) {
  const auto defaults = ParseGenerationDefaults(
      R"({"temperature": 1.0, "top_p": 0.95, "top_k": 40, "eos_token_id": [7, 9],
          "do_sample": true, "max_new_tokens": null})");
  ASSERT_TRUE(defaults) << defaults.error().message();
  EXPECT_EQ(defaults->top_p, 0.95);
  EXPECT_EQ(defaults->top_k, 40);
  EXPECT_EQ(defaults->eos_ids, (std::vector<TokenId>{7, 9}));
  EXPECT_FALSE(defaults->max_new_tokens);
}

TEST(ModelInfoTest, AWrongGenerationConfigNamesTheKey) {
  for (const char* text : {R"({"temperature": 3})", R"({"top_p": 0})", R"({"min_p": "x"})",
                           R"({"eos_token_id": -1})", R"({"top_k": 1.5})"}) {
    const auto defaults = ParseGenerationDefaults(text);
    ASSERT_FALSE(defaults) << text;
    const std::string key(text + 2, std::string_view(text).find('"', 2) - 2);
    EXPECT_NE(defaults.error().message().find("'" + key + "'"), std::string::npos)
        << defaults.error().message();
  }
  EXPECT_FALSE(ParseGenerationDefaults("[1]"));
  EXPECT_FALSE(ParseGenerationDefaults("{"));
}

TEST(ModelInfoTest, TheWindowIsTheSmallerOfTheTwoLimits) {
  ModelInfo info;
  EXPECT_EQ(WindowOf(info, 0), 0);
  EXPECT_EQ(WindowOf(info, 100), 100);
  info.max_model_len = 50;
  EXPECT_EQ(WindowOf(info, 0), 50);
  EXPECT_EQ(WindowOf(info, 100), 50);
  EXPECT_EQ(WindowOf(info, 20), 20);
}

TEST(ModelInfoTest, TheFingerprintChangesWithWhateverChangesTokens) {
  ModelInfo info;
  info.dtype = "bfloat16";
  const std::string base = FingerprintOf(info, 2, 1);
  EXPECT_EQ(base, FingerprintOf(info, 2, 1));
  EXPECT_NE(base, FingerprintOf(info, 4, 1));
  EXPECT_NE(base, FingerprintOf(info, 2, 2));
  info.dtype = "float32";
  EXPECT_NE(base, FingerprintOf(info, 2, 1));
}

}  // namespace
}  // namespace levin
