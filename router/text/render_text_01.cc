// minimax-text-01 (text.md 4.4).
#include "router/text/chat_renderers.h"
#include "router/text/json_print.h"
#include "router/text/json_value.h"
#include "router/text/segment_builder.h"

namespace levin {
namespace {

class Text01Template final : public ChatTemplate {
 public:
  std::string_view name() const override { return "minimax-text-01"; }

  using ChatTemplate::Render;
  // The tools stand behind all messages, but before a turn that stays open.
  std::vector<Segment> Render(const Conversation& conversation) const override {
    SegmentBuilder out;
    const auto& messages = conversation.messages;
    const size_t closed = messages.size() - (conversation.open_end ? 1 : 0);
    for (size_t i = 0; i < closed; ++i) WriteMessage(messages[i], out);
    for (const std::string& tool : conversation.tools) {
      out.Scaffold(kTurnBegin)
          .Scaffold("system function_setting=functions\n")
          .Content(tool)
          .Scaffold(kTurnEnd);
    }
    if (conversation.open_end) WriteAnswer(messages.back(), out);
    if (conversation.add_generation_prompt)
      out.Scaffold(kTurnBegin).Scaffold("ai name=assistant\n");
    return std::move(out).Take();
  }

 private:
  static void WriteMessage(const ChatMessage& message, SegmentBuilder& out) {
    switch (message.role) {
      case Role::kSystem:
        return WriteTurn("system ai_setting=assistant\n", JoinedParts(message, "\n"), out);
      case Role::kUser:
        return WriteTurn("user name=user\n", JoinedParts(message, "\n"), out);
      case Role::kAssistant:
        WriteAnswer(message, out);
        out.Scaffold(kTurnEnd);
        return;
      case Role::kTool:
      case Role::kFunction:
        for (const ToolResult& result : message.results) WriteResult(result, message.role, out);
    }
  }

  static void WriteTurn(std::string_view header, std::string_view text, SegmentBuilder& out) {
    out.Scaffold(kTurnBegin).Scaffold(header).Content(text).Scaffold(kTurnEnd);
  }

  static void WriteAnswer(const ChatMessage& message, SegmentBuilder& out) {
    out.Scaffold(kTurnBegin).Scaffold("ai name=assistant\n").Content(JoinedParts(message, ""));
    if (message.calls.empty()) return;
    out.Scaffold("<function_call>```typescript\n");
    for (const HistoryCall& call : message.calls) {
      out.Scaffold("functions.")
          .Content(call.name)
          .Scaffold("(")
          .Content(call.arguments)
          .Scaffold(")\n");
    }
    out.Scaffold("```");
  }

  // The template writes the text raw, so a tool's text that is no JSON is quoted; the role function
  // is MiniMax's own form and stays as it is.
  static void WriteResult(const ToolResult& result, Role role, SegmentBuilder& out) {
    std::string text = result.text;
    JsonValue parsed;
    if (role == Role::kTool && !ParseJson(text, parsed).ok()) {
      text.clear();
      AppendJsonString(result.text, text);
    }
    out.Scaffold(kTurnBegin)
        .Scaffold("system function_response=functions\n{\"name\": \"")
        .Content(result.name)
        .Scaffold("\", \"response\": ")
        .Content(text)
        .Scaffold("}")
        .Scaffold(kTurnEnd);
  }
};

}  // namespace

std::unique_ptr<ChatTemplate> MakeText01Template() { return std::make_unique<Text01Template>(); }

}  // namespace levin
