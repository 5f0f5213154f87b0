#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "router/text/chat_template.h"
#include "router/text/tokenizer.h"
#include "tests/router/text/json_lines.h"
#include "tests/router/text/vendor_tokenizer.h"

namespace levin {
namespace {

using namespace levin::testing;

struct Family {
  std::string_view file, architecture, name, config;
};
// The renderer that each golden file was made for, chosen as a server would.
constexpr Family kFamilies[] = {
    {"minimax-m1.json", "MiniMaxM1ForCausalLM", "auto", "tokenizer_config.json"},
    {"minimax-m1-quoted.json", "MiniMaxM1ForCausalLM", "auto", "tokenizer_config.quoted.json"},
    {"minimax-m1-tools.json", "MiniMaxM1ForCausalLM", "minimax-m1-tools", "tokenizer_config.json"},
    {"minimax-text-01.json", "MiniMaxText01ForCausalLM", "auto", ""}};

bool Flag(const boost::json::object& object, std::string_view key) {
  const auto* value = object.if_contains({key.data(), key.size()});
  return value && value->is_bool() && value->get_bool();
}

bool Is(const boost::json::object& object, std::string_view key, std::string_view text) {
  const auto* value = object.if_contains({key.data(), key.size()});
  return value && value->is_string() && Text(*value) == text;
}

// A tokenizer folder with that chat template: the demo's rules suffice, only the text is rendered.
class TemplateFolder final {
 public:
  explicit TemplateFolder(const std::filesystem::path& config) {
    dir_ = std::filesystem::path(::testing::TempDir()) /
           ("levin_chat_" + std::to_string(::getpid()) + "_" + config.filename().string());
    std::filesystem::create_directories(dir_);
    const auto demo = std::filesystem::path(LEVIN_SOURCE_DIR) / "models/levin-demo/tokenizer.json";
    std::filesystem::copy_file(demo, dir_ / "tokenizer.json",
                               std::filesystem::copy_options::overwrite_existing);
    if (!config.empty()) {
      std::filesystem::copy_file(config, dir_ / "tokenizer_config.json",
                                 std::filesystem::copy_options::overwrite_existing);
    }
  }
  ~TemplateFolder() { std::filesystem::remove_all(dir_); }
  const std::filesystem::path& path() const { return dir_; }

 private:
  std::filesystem::path dir_;
};

struct Chosen {
  std::optional<Tokenizer> tokenizer;
  std::unique_ptr<ChatTemplate> chat_template;
};

void Choose(const Family& family, Chosen& chosen) {
  const auto config = family.config.empty()
                          ? std::filesystem::path()
                          : VendorFile("tokenizer/m1/" + std::string(family.config));
  const TemplateFolder folder(config);
  Result<Tokenizer> tokenizer = Tokenizer::Load(folder.path());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  chosen.tokenizer = *tokenizer;
  auto made = ChatTemplate::Choose(family.architecture, *tokenizer, family.name);
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ((*made)->warning(), "");
  chosen.chat_template = *std::move(made);
}

std::vector<std::pair<int64_t, int64_t>> ContentSpans(const std::vector<Segment>& segments) {
  std::vector<std::pair<int64_t, int64_t>> spans;
  int64_t at = 0;
  for (const Segment& segment : segments) {
    const auto end = at + static_cast<int64_t>(segment.text.size());
    if (!segment.scaffold) spans.emplace_back(at, end);
    at = end;
  }
  return spans;
}

class ChatGolden : public ::testing::TestWithParam<Family> {};

TEST_P(ChatGolden, RendersEveryCaseByteForByteAndToTheSameIds) {
  const Family& family = GetParam();
  size_t cases = 0, encoded = 0;
  for (const auto& path : GoldenFiles("chat", family.file)) {
    const auto file = ParseJson(ReadAll(path));
    const auto& list = file.as_array();
    if (family.file == "minimax-m1-quoted.json" &&
        VendorFile("tokenizer/m1/tokenizer_config.quoted.json").empty()) {
      GTEST_SKIP() << "SKIPPED " << list.size()
                   << " golden cases: tokenizer_config.quoted.json of MiniMax-M1 is not here";
    }
    Chosen chosen;
    Choose(family, chosen);
    if (HasFatalFailure()) return;
    const Tokenizer* vendor = VendorTokenizer();
    for (const auto& item : list) {
      const auto& object = item.as_object();
      ChatOptions options;
      options.tools_openai_form = Is(object, "tool_prompt_format", "openai");
      options.tools_excluded =
          Is(object, "tool_choice", "none") && Flag(object, "exclude_tools_when_tool_choice_none");
      const std::string name = Text(object.at("name"));
      const auto segments = chosen.chat_template->Render(Text(object.at("request")), options);
      ASSERT_TRUE(segments) << name << ": " << segments.error().message();
      std::string text;
      for (const Segment& segment : *segments) text += segment.text;
      ASSERT_EQ(text, Text(object.at("expected_text"))) << name;
      std::vector<std::pair<int64_t, int64_t>> spans;
      for (const auto& span : object.at("content_spans").as_array()) {
        spans.emplace_back(span.at(0).as_int64(), span.at(1).as_int64());
      }
      EXPECT_EQ(ContentSpans(*segments), spans) << name;
      ++cases;
      if (!vendor) continue;
      EXPECT_EQ(vendor->EncodeSegments(*segments), Ids(object.at("expected_ids"))) << name;
      const auto* open = object.if_contains("expected_ids_specials_in_content");
      EXPECT_EQ(vendor->Encode(text, SpecialTokens::kRecognised),
                Ids(open ? *open : object.at("expected_ids")))
          << name;
      ++encoded;
    }
  }
  std::cout << family.file << ": " << cases << " texts, " << encoded << " id lists\n";
  if (encoded < cases)
    std::cout << "SKIPPED " << cases - encoded << " id lists: no vendor tokenizer here\n";
  EXPECT_GT(cases, 0u);
}

INSTANTIATE_TEST_SUITE_P(Families, ChatGolden, ::testing::ValuesIn(kFamilies),
                         [](const auto& info) { return "F" + std::to_string(info.index); });

// The codes of api.md 9 that a Status of ours stands for.
std::string CodeOf(const Status& status) {
  if (status.reason() == "INVALID_FIELD") return "invalid_value";
  std::string code = status.reason();
  for (char& c : code) c = static_cast<char>(std::tolower(c));
  return code;
}

bool Contains(const boost::json::value& list, std::string_view text) {
  const auto& items = list.as_array();
  return std::any_of(items.begin(), items.end(),
                     [text](const auto& item) { return Text(item) == text; });
}

TEST(ChatGolden, RefusesEveryBadRequestNamingTheField) {
  size_t cases = 0;
  for (const auto& path : GoldenFiles("chat", "errors.json")) {
    const auto file = ParseJson(ReadAll(path));
    for (const Family& family : kFamilies) {
      Chosen chosen;
      Choose(family, chosen);
      if (HasFatalFailure()) return;
      for (const auto& item : file.as_array()) {
        const std::string name = Text(item.at("name"));
        const auto segments = chosen.chat_template->Render(Text(item.at("request")), {});
        ASSERT_FALSE(segments) << name;
        EXPECT_EQ(segments.error().code(), Code::kInvalidArgument) << name;
        EXPECT_TRUE(Contains(item.at("param"), segments.error().param()))
            << name << ": " << segments.error().param();
        EXPECT_TRUE(Contains(item.at("code"), CodeOf(segments.error())))
            << name << ": " << segments.error().reason();
        EXPECT_NE(segments.error().message(), "") << name;
        ++cases;
      }
    }
  }
  std::cout << cases << " refusals\n";
  EXPECT_GT(cases, 0u);
}

// examples.json: messages and tools of the demo model, rendered with minimax-m1.
TEST(ChatDemo, ExamplesRenderToTheirPromptIds) {
  const std::filesystem::path dir = std::filesystem::path(LEVIN_SOURCE_DIR) / "models/levin-demo";
  Result<Tokenizer> demo = Tokenizer::Load(dir);
  ASSERT_TRUE(demo) << demo.error().message();
  const auto chosen = ChatTemplate::Choose("MiniMaxM1ForCausalLM", *demo, "auto");
  ASSERT_TRUE(chosen);
  EXPECT_EQ((*chosen)->name(), "minimax-m1");
  const auto examples = ParseJson(ReadAll(dir / "examples.json"));
  size_t cases = 0;
  for (const auto& example : examples.at("cases").as_array()) {
    const auto segments = (*chosen)->Render(boost::json::serialize(example), {});
    ASSERT_TRUE(segments) << segments.error().message();
    EXPECT_EQ(demo->EncodeSegments(*segments), Ids(example.at("prompt_ids")));
    ++cases;
  }
  std::cout << cases << " prompts of the demo model\n";
  EXPECT_GT(cases, 0u);
}

TEST(ChatTemplate, SaysWhichNamesThereAre) {
  const std::filesystem::path dir = std::filesystem::path(LEVIN_SOURCE_DIR) / "models/levin-demo";
  Result<Tokenizer> demo = Tokenizer::Load(dir);
  ASSERT_TRUE(demo);
  const auto wrong = ChatTemplate::Choose("MiniMaxM1ForCausalLM", *demo, "minimax-m2");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message(), ::testing::HasSubstr("minimax-m1-tools"));
  EXPECT_FALSE(ChatTemplate::Choose("LlamaForCausalLM", *demo, "auto"));
  EXPECT_TRUE(ChatTemplate::Choose("LlamaForCausalLM", *demo, "minimax-text-01"));
}

TEST(ChatTemplate, KnowsWhetherTheReplyBeginsInItsReasoning) {
  const auto ends = [](std::string text, bool scaffold) {
    const Segment segments[] = {{"<beginning_of_sentence>ai name=assistant\n", true},
                                {std::move(text), scaffold}};
    return EndsInThinkBlock(segments);
  };
  EXPECT_TRUE(ends("<think>\nFirst,", false));
  EXPECT_TRUE(ends("\n <think>", false));
  EXPECT_FALSE(ends("<think>\nFirst\n</think>\nso", false));
  EXPECT_FALSE(ends("Well: <think>", false));
  EXPECT_FALSE(ends("<think>", true));
  EXPECT_FALSE(EndsInThinkBlock({}));
}

}  // namespace
}  // namespace levin
