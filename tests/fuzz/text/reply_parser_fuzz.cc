// Any reply, whole and in pieces: the same parts, and without calls nothing of the text is lost.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "router/text/reply_parser.h"
#include "router/text/utf8.h"
#include "tests/fuzz/require.h"

namespace levin {
namespace {

using levin::testing::Require;

struct Reply {
  std::string content, reasoning;
  std::vector<std::string> calls;  // name, newline, arguments
  bool null_content = false, tool_calls = false;
  bool operator==(const Reply&) const = default;

  void Add(const std::vector<ReplyPart>& parts) {
    for (const ReplyPart& part : parts) {
      Require(IsValidUtf8(part.text) && IsValidUtf8(part.name));
      if (part.kind == ReplyPart::Kind::kContent) content += part.text;
      if (part.kind == ReplyPart::Kind::kReasoning) reasoning += part.text;
      if (part.kind == ReplyPart::Kind::kToolStart) {
        Require(part.index == static_cast<int32_t>(calls.size()));
        calls.push_back(part.name + "\n");
      }
      if (part.kind == ReplyPart::Kind::kToolArgs) calls.at(part.index) += part.text;
    }
  }
};

ReplyParserOptions OptionsOf(uint8_t bits) {
  ReplyParserOptions options;
  options.reasoning = bits & 1;
  options.tools = bits & 2 ? ToolFamily::kM1 : bits & 4 ? ToolFamily::kText01 : ToolFamily::kNone;
  options.parallel_tool_calls = bits & 8;
  options.start = bits & 16 ? ThinkStart::kInside : ThinkStart::kNone;
  options.function_call = 7;
  options.id_seed = 1;
  return options;
}

// 0x01 stands for the special token. `piece` 0: all at once.
Reply Parse(uint8_t bits, std::string_view text, size_t piece) {
  ReplyParser parser(OptionsOf(bits));
  Reply reply;
  Utf8Assembler characters;
  std::string whole;
  std::vector<SpecialEvent> specials;
  size_t fed = 0;
  for (const char c : text) {
    if (c == 1) {
      specials.push_back({7, whole.size()});
    } else {
      characters.Push({&c, 1}, whole);
    }
    if (piece == 0 || ++fed % piece != 0) continue;
    reply.Add(parser.Push(whole, specials));
    whole.clear();
    specials.clear();
  }
  reply.Add(parser.Push(whole, specials));
  reply.Add(parser.Flush(bits & 32 ? FinishReason::kLength : FinishReason::kStop));
  reply.null_content = parser.content_is_null();
  reply.tool_calls = parser.ends_in_tool_calls();
  return reply;
}

void Check(uint8_t bits, size_t piece, std::string_view text) {
  const Reply reply = Parse(bits, text, 0);
  Require(Parse(bits, text, 1) == reply);
  Require(Parse(bits, text, piece + 2) == reply);
  if (bits & 1 || !reply.calls.empty()) return;
  std::string kept;
  Utf8Assembler characters;
  for (const char c : text) {
    if (c != 1) characters.Push({&c, 1}, kept);
  }
  Require(reply.content == kept);
}

}  // namespace
}  // namespace levin

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  levin::Check(data[0], data[1] % 8, {reinterpret_cast<const char*>(data) + 2, size - 2});
  return 0;
}
