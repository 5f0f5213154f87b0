// A chat request in the form that every renderer understands (text.md 5): typed messages, each with
// at least one text part, tool results with their names, arguments and tools printed as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace levin {

struct ChatOptions {
  bool add_generation_prompt = true;
  bool continue_final_message = false;
  bool add_generation_prompt_set = false;  // the client asked for it by name
  bool tools_excluded = false;             // tool_choice none, and the server leaves tools out then
  bool tools_openai_form = false;  // the nested object with its nulls instead of the flat one
};

enum class Role : uint8_t { kSystem, kUser, kAssistant, kTool, kFunction };

struct TextPart {
  std::string text;
  std::string name;  // of a tool result's part; "" for none
};

struct HistoryCall {
  std::string id, name;
  std::string arguments;  // printed; "{}" for none
};

// One result in a message of the roles tool and function: parts up to the next one with a name.
struct ToolResult {
  std::string name;
  std::string text;  // its parts, joined by line feeds
};

struct ChatMessage {
  Role role = Role::kUser;
  std::vector<TextPart> parts;      // at least one, perhaps ""
  std::vector<HistoryCall> calls;   // assistant
  std::vector<ToolResult> results;  // tool, function
};

// The texts of its parts, `separator` between them.
std::string JoinedParts(const ChatMessage& message, std::string_view separator);

struct Conversation {
  std::vector<ChatMessage> messages;  // not empty
  std::vector<std::string> tools;     // one JSON text each
  bool add_generation_prompt = true;
  bool open_end = false;  // the last message, an assistant's, stays open
};

// `request_json` is the body of a chat request; messages, tools, add_generation_prompt and
// continue_final_message are read, what it leaves out comes from `options`.
// Errors are kInvalidArgument with the path of the field as param. Their reasons are INVALID_FIELD
// (OpenAI's code invalid_value), else the code in capitals: INVALID_TYPE, INVALID_JSON,
// MISSING_REQUIRED_PARAMETER, UNSUPPORTED_PARAMETER, TEMPLATE_ERROR.
Result<Conversation> ReadConversation(std::string_view request_json, const ChatOptions& options);

}  // namespace levin
