#include "common/config/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/common/config/m1_config.h"
#include "tests/support/golden.h"

namespace levin {
namespace {

namespace json = boost::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::M1Config;

Result<ModelConfig> Parse(const json::object& config) {
  return ParseModelConfig(json::serialize(config));
}

// The M1 file with one change.
template <typename T>
json::object With(std::string_view key, T value) {
  json::object config = M1Config();
  config[key] = json::value_from(value);
  return config;
}
json::object With(std::string_view key, const char* text) {
  json::object config = M1Config();
  config[key] = json::parse(text);
  return config;
}
json::object Without(std::initializer_list<std::string_view> keys) {
  json::object config = M1Config();
  for (std::string_view key : keys) config.erase(key);
  return config;
}

// "" when it is accepted.
std::string ErrorOf(const json::object& config) {
  const Result<ModelConfig> parsed = Parse(config);
  return parsed ? "" : parsed.error().message();
}

// What transformers writes for the same network.
json::object NativeConfig() {
  json::object config =
      Without({"attn_type_list", "layernorm_full_attention_alpha", "layernorm_full_attention_beta",
               "layernorm_linear_attention_alpha", "layernorm_linear_attention_beta",
               "layernorm_mlp_alpha", "layernorm_mlp_beta", "postnorm", "rope_theta", "rotary_dim",
               "shared_intermediate_size", "shared_moe_mode"});
  config["architectures"] = {"MiniMaxForCausalLM"};
  config["model_type"] = "minimax";
  json::array kinds;
  for (int l = 0; l < 80; ++l) kinds.push_back(l % 8 == 7 ? "full_attention" : "linear_attention");
  config["layer_types"] = kinds;
  for (const char* part : {"full_attn", "linear_attn", "mlp"}) {
    config[std::string(part) + "_alpha_factor"] = 3.5565588200778455;
    config[std::string(part) + "_beta_factor"] = 1.0;
  }
  config["rope_parameters"] = {
      {"rope_type", "default"}, {"rope_theta", 10000000.0}, {"partial_rotary_factor", 0.5}};
  config["block_size"] = 256;
  return config;
}

TEST(ModelConfig, ReadsThePublishedFile) {
  const Result<ModelConfig> config = Parse(M1Config());
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->family, ModelConfig::Family::kM1);
  EXPECT_EQ(config->layers, 80);
  EXPECT_EQ(config->lightning_layers(), 70);
  EXPECT_EQ(config->softmax_layers(), 10);
  EXPECT_EQ(config->layer_kinds[7], LayerKind::kSoftmax);
  EXPECT_EQ(config->layer_kinds[8], LayerKind::kLightning);
  EXPECT_EQ(config->hidden, 6144);
  EXPECT_EQ(config->heads, 64);
  EXPECT_EQ(config->kv_heads, 8);
  EXPECT_EQ(config->head_dim, 128);
  EXPECT_EQ(config->rotary_dim, 64);
  EXPECT_EQ(config->rope_theta, 1e7);
  EXPECT_EQ(config->max_positions, 10240000);
  EXPECT_EQ(config->experts, 32);
  EXPECT_EQ(config->experts_per_token, 2);
  EXPECT_EQ(config->expert_width, 9216);
  EXPECT_EQ(config->vocab, 200064);
  EXPECT_TRUE(config->postnorm);
  EXPECT_FALSE(config->tie_word_embeddings);
  EXPECT_FALSE(config->experts_stored_int8);
  EXPECT_EQ(config->rms_norm_eps, 1e-5f);
  EXPECT_EQ(config->lightning_norm_eps, 1e-6f);
  EXPECT_DOUBLE_EQ(config->lightning.alpha, 3.5565588200778455);
  EXPECT_EQ(config->softmax, config->lightning);
  EXPECT_EQ(config->mlp.beta, 1.0);
}

TEST(ModelConfig, EveryNeededKeyIsMissedByName) {
  for (const char* key : {"attn_type_list",
                          "num_hidden_layers",
                          "hidden_size",
                          "num_attention_heads",
                          "num_key_value_heads",
                          "head_dim",
                          "rotary_dim",
                          "rope_theta",
                          "max_position_embeddings",
                          "intermediate_size",
                          "num_local_experts",
                          "num_experts_per_tok",
                          "postnorm",
                          "layernorm_linear_attention_alpha",
                          "layernorm_linear_attention_beta",
                          "layernorm_full_attention_alpha",
                          "layernorm_full_attention_beta",
                          "layernorm_mlp_alpha",
                          "layernorm_mlp_beta",
                          "rms_norm_eps",
                          "vocab_size"}) {
    const std::string named = "'" + std::string(key);
    EXPECT_THAT(ErrorOf(Without({key})), AllOf(HasSubstr(named), HasSubstr("missing"))) << key;
    EXPECT_THAT(ErrorOf(With(key, "null")), AllOf(HasSubstr(named), HasSubstr("missing"))) << key;
    EXPECT_THAT(ErrorOf(With(key, "\"many\"")), AllOf(HasSubstr(named), HasSubstr("\"many\"")))
        << key;
  }
}

TEST(ModelConfig, KeysThatDoNotMatterMayBeAbsent) {
  const ModelConfig whole = *Parse(M1Config());
  for (const char* key :
       {"model_type", "attention_dropout", "auto_map", "bos_token_id", "eos_token_id", "hidden_act",
        "initializer_range", "output_router_logits", "router_aux_loss_coef", "router_jitter_noise",
        "shared_intermediate_size", "shared_moe_mode", "sliding_window", "tie_word_embeddings",
        "transformers_version", "use_cache"}) {
    const Result<ModelConfig> parsed = Parse(Without({key}));
    ASSERT_TRUE(parsed) << key << ": " << parsed.error().message();
    EXPECT_EQ(*parsed, whole) << key;
  }
}

TEST(ModelConfig, WrongValuesAreNamedWithWhatWasExpected) {
  const struct {
    const char* key;
    const char* value;
    const char* says;
  } cases[] = {
      {"hidden_size", "0", "is 0, expected an integer from 1"},
      {"hidden_size", "6144.5", "is 6.1445E3, expected an integer"},
      {"hidden_size", "9223372036854775808", "expected an integer"},
      {"num_hidden_layers", "81", "has 80 entries, expected num_hidden_layers = 81"},
      {"attn_type_list", "[0,1,2]", "attn_type_list[2]' is 2, expected 0 or 1"},
      {"attn_type_list", "[]", "has 0 entries"},
      {"num_key_value_heads", "7", "expected a divisor of num_attention_heads 64"},
      {"rotary_dim", "63", "expected an even number"},
      {"rotary_dim", "130", "is 130, expected an integer from 2 to 128"},
      {"rope_theta", "-1", "is -1, expected a number greater than 0"},
      {"rms_norm_eps", "0", "is 0, expected a number greater than 0 less than 1"},
      {"layernorm_mlp_alpha", "\"x\"", "expected a number"},
      {"num_local_experts", "1", "dense MLP"},
      {"num_local_experts", "[32,16]", "a list of equal numbers"},
      {"num_experts_per_tok", "33", "is 33, expected an integer from 1 to 32"},
      {"shared_intermediate_size", "9216", "is 9216, expected 0"},
      {"shared_intermediate_size", "[0,0,9]", "is [0,0,9], expected 0"},
      {"hidden_act", "\"gelu\"", "is \"gelu\", expected \"silu\""},
      {"sliding_window", "4096", "is 4096, expected null"},
      {"attention_bias", "true", "is true, expected null, false or 0"},
      {"use_qk_norm", "true", "use_qk_norm"},
      {"postnorm", "1", "is 1, expected true or false"},
      {"tie_word_embeddings", "\"no\"", "expected true or false"},
      {"architectures", "[\"LlamaForCausalLM\"]",
       "MiniMaxText01ForCausalLM, MiniMaxM1ForCausalLM, MiniMaxForCausalLM"},
      {"architectures", "[]", "a list of one name"},
      {"architectures", "[\"MiniMaxVL01ForConditionalGeneration\"]", "expected one of"},
      {"text_config", "{}", "vision-language"},
      {"rope_scaling", "{\"rope_type\":\"yarn\",\"factor\":4}",
       "rope_scaling.rope_type' is \"yarn\", expected \"default\""},
      {"rope_scaling", "{\"factor\":4}", "rope_scaling.factor"},
      {"rope_parameters", "{\"rope_type\":\"linear\"}", "rope_parameters.rope_type' is \"linear\""},
      {"rope_parameters", "{\"factor\":2}", "rope_parameters.factor"},
      {"rope_parameters", "{\"rope_theta\":10000}",
       "rope_parameters.rope_theta' gives 10000, but 'rope_theta' gives 1e+07"},
      {"rope_parameters", "{\"partial_rotary_factor\":0.25}",
       "gives 32, but 'rotary_dim' gives 64"},
      {"partial_rotary_factor", "1.0", "gives 128, but 'rotary_dim' gives 64"},
      {"layer_types", "[\"full_attention\"]", "the same layer kinds as 'attn_type_list'"},
      {"layer_types", "[\"mamba\"]", "layer_types[0]' is \"mamba\""},
      {"mlp_alpha_factor", "1.5", "mlp_alpha_factor' gives 1.5, but 'layernorm_mlp_alpha'"},
      {"quantization_config", "{\"quant_method\":\"gptq\",\"bits\":4}", "experts_int8"},
      {"quantization_config", "{\"quant_method\":\"experts_int8\",\"bits\":4}", "experts_int8"},
      {"block_size", "0", "block_size"},
  };
  for (const auto& test : cases) {
    EXPECT_THAT(ErrorOf(With(test.key, test.value)), HasSubstr(test.says))
        << test.key << " = " << test.value;
  }
}

TEST(ModelConfig, AcceptsEachSpellingOfTheSameThing) {
  const ModelConfig whole = *Parse(M1Config());
  EXPECT_EQ(Parse(With("num_local_experts", std::vector<int>(80, 32))).value(), whole);
  EXPECT_EQ(Parse(With("shared_intermediate_size", std::vector<int>{0, 0})).value(), whole);
  EXPECT_EQ(Parse(With("rope_theta", 1e7)).value(), whole);
  EXPECT_EQ(Parse(With("rope_scaling", "{\"type\":\"default\"}")).value(), whole);
  EXPECT_EQ(Parse(With("block", 256)).value(), whole);
  json::object synonym = Without({"attn_type_list"});
  synonym["decoder_attention_types"] = M1Config()["attn_type_list"];
  EXPECT_EQ(Parse(synonym).value(), whole);
  json::object nested = Without({"rope_theta", "rotary_dim"});
  nested["rope_parameters"] = {{"rope_theta", 10000000}, {"partial_rotary_factor", 0.5}};
  EXPECT_EQ(Parse(nested).value(), whole);
  nested["rope_theta"] = 10000000;
  nested["rotary_dim"] = 64;
  EXPECT_EQ(Parse(nested).value(), whole) << "both places, the same values";
  json::object two_blocks = With("block", 256);
  two_blocks["block_size"] = 128;
  EXPECT_THAT(ErrorOf(two_blocks), HasSubstr("block_size' gives 128, but 'block' gives 256"));
}

// A04: the network is the same under every name.
TEST(ModelConfig, AllAliasesDescribeTheSameNetwork) {
  ModelConfig whole = *Parse(M1Config());
  const auto same_network = [&](const Result<ModelConfig>& parsed) {
    ASSERT_TRUE(parsed) << parsed.error().message();
    ModelConfig other = *parsed;
    other.family = whole.family;
    other.architecture = whole.architecture;
    EXPECT_EQ(other, whole);
  };
  for (const char* name :
       {"MiniMaxText01ForCausalLM", "MiniMaxM1ForCausalLM", "MiniMaxForCausalLM"}) {
    same_network(Parse(With("architectures", std::vector<std::string>{name})));
  }
  same_network(Parse(NativeConfig()));
  for (const char* type :
       {"minimax_m1", "MiniMaxM1", "minimax_text_01", "MiniMaxText01", "minimax"}) {
    json::object config = Without({"architectures"});
    config["model_type"] = type;
    same_network(Parse(config));
  }
  json::object nameless = Without({"architectures", "model_type"});
  EXPECT_THAT(ErrorOf(nameless), HasSubstr("MiniMaxForCausalLM"));
  nameless["model_type"] = "llama";
  EXPECT_THAT(ErrorOf(nameless), HasSubstr("\"llama\""));
}

TEST(ModelConfig, NativeFilesArePostNormUnlessTheySayOtherwise) {
  EXPECT_TRUE(Parse(NativeConfig())->postnorm);
  json::object config = NativeConfig();
  config["postnorm"] = false;
  EXPECT_FALSE(Parse(config)->postnorm);
  config = NativeConfig();
  config["rope_parameters"].as_object().erase("partial_rotary_factor");
  EXPECT_THAT(ErrorOf(config), HasSubstr("'rotary_dim'"));
}

TEST(ModelConfig, StoredInt8ExpertsAreAnnouncedByTheFile) {
  EXPECT_TRUE(Parse(With("quantization_config", "{\"quant_method\":\"experts_int8\"}"))
                  ->experts_stored_int8);
}

TEST(ModelConfig, TextThatIsNoObjectIsRefused) {
  EXPECT_FALSE(ParseModelConfig(""));
  EXPECT_FALSE(ParseModelConfig("{"));
  EXPECT_FALSE(ParseModelConfig("[]"));
  EXPECT_FALSE(ParseModelConfig("{\"a\":1} x"));
  EXPECT_FALSE(ParseModelConfig(std::string(100000, '[')));
  EXPECT_THAT(ParseModelConfig("{\"a\":{\"b\":1,\"b\":2}}").error().message(),
              HasSubstr("'b' occurs twice"));
}

// Python writes what JSON does not know; and a double may be too small or too large for the
// network.
TEST(ModelConfig, NumbersThatAreNoneAreRefused) {
  for (const char* key : {"rope_theta", "rms_norm_eps", "layernorm_mlp_alpha", "head_dim"}) {
    for (const char* number : {"NaN", "Infinity", "-Infinity", "1e999"}) {
      json::object config = M1Config();
      config[key] = "PLACE";
      std::string text = json::serialize(config);
      text.replace(text.find("\"PLACE\""), 7, number);
      EXPECT_FALSE(ParseModelConfig(text)) << key << " " << number;
    }
  }
  EXPECT_THAT(ErrorOf(With("rms_norm_eps", "1e-50")), HasSubstr("rms_norm_eps"));
}

TEST(ModelConfig, EveryGoldenModelLoads) {
  int found = 0;
  for (const auto& dir : testing::GoldenDirs("network")) {
    for (const auto& entry : std::filesystem::directory_iterator(dir)) {
      if (!entry.is_directory()) continue;
      ++found;
      const Result<ModelConfig> config = LoadModelConfig(entry.path());
      EXPECT_TRUE(config) << entry.path() << ": " << config.error().message();
    }
  }
  EXPECT_GE(found, 6);
}

TEST(ModelConfig, FilesThatAreNoneAreRefusedByName) {
  namespace fs = std::filesystem;
  const fs::path dir = fs::path(::testing::TempDir()) / "levin_config_files";
  fs::remove_all(dir);
  fs::create_directories(dir / "fifo");
  const Result<ModelConfig> absent = LoadModelConfig(dir);
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code(), Code::kNotFound);
  EXPECT_THAT(absent.error().message(), HasSubstr("config.json"));
  ASSERT_EQ(mkfifo((dir / "fifo/config.json").c_str(), 0600), 0);
  EXPECT_THAT(LoadModelConfig(dir / "fifo").error().message(), HasSubstr("not a regular file"));
  fs::create_directories(dir / "config.json");
  EXPECT_THAT(LoadModelConfig(dir).error().message(), HasSubstr("not a regular file"));
  fs::create_directories(dir / "bad");
  std::ofstream(dir / "bad/config.json") << "{\"hidden_size\":";
  EXPECT_THAT(LoadModelConfig(dir / "bad").error().message(),
              AllOf(HasSubstr("config.json"), HasSubstr("not valid JSON")));
  fs::remove_all(dir);
}

}  // namespace
}  // namespace levin
