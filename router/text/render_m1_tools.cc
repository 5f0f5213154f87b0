// minimax-m1-tools: vLLM's examples/tool_chat_template_minimax_m1.jinja (text.md 4.3).
#include "router/text/char_table.h"
#include "router/text/chat_renderers.h"
#include "router/text/segment_builder.h"
#include "router/text/utf8.h"

namespace levin {
namespace {

constexpr std::string_view kDefaultSystem =
    "You are a helpful assistant created by Minimax based on MiniMax-M1 model.";

bool IsStripped(char32_t code) { return IsWhiteSpace(code) || (code >= 0x1C && code <= 0x1F); }

// Python's str.strip().
std::string_view Strip(std::string_view text) {
  while (!text.empty()) {
    const CodePoint code = DecodeUtf8(text);
    if (!IsStripped(code.value)) break;
    text.remove_prefix(code.bytes);
  }
  while (!text.empty()) {
    size_t last = text.size() - 1;
    while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
    if (!IsStripped(DecodeUtf8(text.substr(last)).value)) break;
    text.remove_suffix(text.size() - last);
  }
  return text;
}

class M1ToolsTemplate final : public ChatTemplate {
 public:
  std::string_view name() const override { return "minimax-m1-tools"; }

  using ChatTemplate::Render;
  std::vector<Segment> Render(const Conversation& conversation) const override {
    SegmentBuilder out;
    out.Scaffold("<begin_of_document>");
    WriteSystem(conversation, out);
    WriteTools(conversation, out);
    for (size_t i = 0; i < conversation.messages.size(); ++i) {
      const bool open = conversation.open_end && i + 1 == conversation.messages.size();
      WriteMessage(conversation.messages[i], open, out);
    }
    if (conversation.add_generation_prompt)
      out.Scaffold(kTurnBegin).Scaffold("ai name=MiniMax AI\n");
    return std::move(out).Take();
  }

 private:
  // All of them, one a line, trimmed as a whole; the default only where there is none at all.
  static void WriteSystem(const Conversation& conversation, SegmentBuilder& out) {
    std::string system;
    bool any = false;
    for (const ChatMessage& message : conversation.messages) {
      if (message.role != Role::kSystem) continue;
      if (any) system += '\n';
      system += JoinedParts(message, "\n");
      any = true;
    }
    const std::string_view text = Strip(system);
    if (any && text.empty()) return;
    out.Scaffold(kTurnBegin).Scaffold("system ai_setting=MiniMax AI\n");
    any ? out.Content(text) : out.Scaffold(kDefaultSystem);
    out.Scaffold(kTurnEnd);
  }

  static void WriteTools(const Conversation& conversation, SegmentBuilder& out) {
    if (conversation.tools.empty()) return;
    out.Scaffold(kTurnBegin).Scaffold(kToolsHead);
    for (const std::string& tool : conversation.tools) out.Content(tool).Scaffold("\n");
    out.Scaffold(kToolsFoot)
        .Scaffold(R"({"name": <tool-name>, "arguments": <args-json-object>})")
        .Scaffold("\n...\n</tool_calls>")
        .Scaffold(kTurnEnd);
  }

  static void WriteMessage(const ChatMessage& message, bool open, SegmentBuilder& out) {
    switch (message.role) {
      case Role::kSystem:
        return;
      case Role::kUser:
        out.Scaffold(kTurnBegin).Scaffold("user name=user\n");
        for (const TextPart& part : message.parts) out.Content(Strip(part.text));
        break;
      case Role::kAssistant:
        out.Scaffold(kTurnBegin).Scaffold("ai name=MiniMax AI\n");
        WriteAnswer(message, open, out);
        break;
      case Role::kTool:
      case Role::kFunction:
        out.Scaffold(kTurnBegin).Scaffold("tool name=tools\n");
        for (const TextPart& part : message.parts) {
          out.Scaffold("tool result: ").Content(part.text).Scaffold("\n\n");
        }
        break;
    }
    if (!open) out.Scaffold(kTurnEnd);
  }

  // With calls the text is lost, as there. A turn that stays open is continued as it was sent.
  static void WriteAnswer(const ChatMessage& message, bool open, SegmentBuilder& out) {
    if (message.calls.empty()) {
      for (const TextPart& part : message.parts) out.Content(open ? part.text : Strip(part.text));
      return;
    }
    out.Scaffold("<tool_calls>\n");
    for (const HistoryCall& call : message.calls) {
      out.Scaffold("{\"name\": \"")
          .Content(call.name)
          .Scaffold("\", \"arguments\": ")
          .Content(call.arguments)
          .Scaffold("}\n");
    }
    out.Scaffold("</tool_calls>");
  }
};

}  // namespace

std::unique_ptr<ChatTemplate> MakeM1ToolsTemplate() { return std::make_unique<M1ToolsTemplate>(); }

}  // namespace levin
