// minimax-m1: the template of the M1 checkpoints (text.md 4.2).
#include "router/text/chat_renderers.h"
#include "router/text/json_print.h"
#include "router/text/segment_builder.h"

namespace levin {
namespace {

bool IsResult(const ChatMessage& message) {
  return message.role == Role::kTool || message.role == Role::kFunction;
}

class M1Template final : public ChatTemplate {
 public:
  explicit M1Template(bool quoted_keys) : quoted_keys_(quoted_keys) {}

  std::string_view name() const override { return "minimax-m1"; }

  using ChatTemplate::Render;
  std::vector<Segment> Render(const Conversation& conversation) const override {
    SegmentBuilder out;
    out.Scaffold("<begin_of_document>");
    WriteSystem(conversation, out);
    WriteTools(conversation, out);
    const auto& messages = conversation.messages;
    for (size_t i = 0; i < messages.size(); ++i) {
      const ChatMessage& message = messages[i];
      if (message.role == Role::kUser) WriteUser(message, out);
      if (message.role == Role::kAssistant) {
        WriteAssistant(message, conversation.open_end && i + 1 == messages.size(), out);
      }
      if (IsResult(message)) {
        // Results that follow each other are one turn.
        if (i == 0 || !IsResult(messages[i - 1]))
          out.Scaffold(kTurnBegin).Scaffold("tool name=tools\n");
        WriteResults(message, out);
        if (i + 1 == messages.size() || !IsResult(messages[i + 1])) out.Scaffold(kTurnEnd);
      }
    }
    if (conversation.add_generation_prompt)
      out.Scaffold(kTurnBegin).Scaffold("ai name=assistant\n");
    return std::move(out).Take();
  }

 private:
  // All of them in one turn at the front, wherever they stand.
  static void WriteSystem(const Conversation& conversation, SegmentBuilder& out) {
    std::string system;
    for (const ChatMessage& message : conversation.messages) {
      if (message.role == Role::kSystem) system += JoinedParts(message, "\n");
    }
    if (system.empty()) return;
    out.Scaffold(kTurnBegin)
        .Scaffold("system ai_setting=assistant\n")
        .Content(system)
        .Scaffold(kTurnEnd);
  }

  void WriteTools(const Conversation& conversation, SegmentBuilder& out) const {
    if (conversation.tools.empty()) return;
    out.Scaffold(kTurnBegin).Scaffold(kToolsHead);
    for (const std::string& tool : conversation.tools) out.Content(tool).Scaffold("\n");
    out.Scaffold(kToolsFoot)
        .Scaffold(quoted_keys_ ? R"({"name": <tool-name-1>, "arguments": <args-json-object-1>})"
                               : "{name: <tool-name-1>, arguments: <args-json-object-1>}")
        .Scaffold("\n...\n</tool_calls>")
        .Scaffold(kTurnEnd);
  }

  static void WriteUser(const ChatMessage& message, SegmentBuilder& out) {
    out.Scaffold(kTurnBegin)
        .Scaffold("user name=user\n")
        .Content(JoinedParts(message, "\n"))
        .Scaffold(kTurnEnd);
  }

  // The calls stand behind the text in the form that the model itself writes.
  static void WriteAssistant(const ChatMessage& message, bool open, SegmentBuilder& out) {
    const std::string text = JoinedParts(message, "");
    out.Scaffold(kTurnBegin).Scaffold("ai name=assistant\n").Content(text);
    if (!message.calls.empty()) {
      if (!text.empty() && text.back() != '\n') out.Scaffold("\n");
      out.Scaffold("<tool_calls>\n");
      for (const HistoryCall& call : message.calls) {
        std::string name;
        AppendJsonString(call.name, name);
        out.Scaffold("{\"name\": \"")
            .Content(std::string_view(name).substr(1, name.size() - 2))
            .Scaffold("\", \"arguments\": ")
            .Content(call.arguments)
            .Scaffold("}\n");
      }
      out.Scaffold("</tool_calls>");
    }
    if (!open) out.Scaffold(kTurnEnd);
  }

  static void WriteResults(const ChatMessage& message, SegmentBuilder& out) {
    for (const ToolResult& result : message.results) {
      out.Scaffold("tool name: ")
          .Content(result.name)
          .Scaffold("\ntool result: ")
          .Content(result.text)
          .Scaffold("\n\n");
    }
  }

  const bool quoted_keys_;
};

}  // namespace

std::unique_ptr<ChatTemplate> MakeM1Template(bool quoted_keys) {
  return std::make_unique<M1Template>(quoted_keys);
}

}  // namespace levin
