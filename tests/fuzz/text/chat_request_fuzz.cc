// Any bytes as a chat request, for every template: an error that names something, or a prompt that
// is text; and JSON that was read prints to JSON that reads and prints the same.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "router/text/chat_template.h"
#include "router/text/json_print.h"
#include "router/text/json_value.h"
#include "router/text/utf8.h"
#include "tests/fuzz/require.h"

namespace levin {
namespace {

using levin::testing::Require;

const std::vector<std::unique_ptr<ChatTemplate>>& Templates() {
  static const auto& templates = *[] {
    auto* made = new std::vector<std::unique_ptr<ChatTemplate>>;
    const auto demo =
        Tokenizer::Load(std::filesystem::path(LEVIN_SOURCE_DIR) / "models/levin-demo");
    for (const char* name : {"minimax-m1", "minimax-m1-tools", "minimax-text-01"}) {
      made->push_back(*ChatTemplate::Choose("MiniMaxM1ForCausalLM", *demo, name));
    }
    return made;
  }();
  return templates;
}

void CheckRender(std::string_view request, const ChatOptions& options) {
  for (const auto& chat_template : Templates()) {
    const auto segments = chat_template->Render(request, options);
    if (!segments) {
      Require(segments.error().code() == Code::kInvalidArgument &&
              !segments.error().message().empty());
      Require(IsValidUtf8(segments.error().message()) && IsValidUtf8(segments.error().param()));
      continue;
    }
    Require(!segments->empty() && segments->front().scaffold);
    for (const Segment& segment : *segments) Require(IsValidUtf8(segment.text));
  }
}

void CheckJson(std::string_view text) {
  JsonValue value, again;
  std::string printed, reprinted;
  if (!IsValidUtf8(text) || !ParseJson(text, value).ok() || !AppendJson(value, printed).ok())
    return;
  Require(IsValidUtf8(printed) && ParseJson(printed, again).ok());
  Require(AppendJson(again, reprinted).ok() && reprinted == printed);
}

}  // namespace
}  // namespace levin

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  levin::ChatOptions options;
  options.continue_final_message = data[0] & 1;
  options.tools_excluded = data[0] & 2;
  options.tools_openai_form = data[0] & 4;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  levin::CheckRender(text, options);
  levin::CheckJson(text);
  return 0;
}
