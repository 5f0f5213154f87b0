#include "router/text/conversation.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include "router/text/json_print.h"
#include "router/text/json_value.h"
#include "router/text/utf8.h"

namespace levin {
namespace {

constexpr size_t kMessagesMax = 4096;
constexpr size_t kToolsMax = 128;
constexpr size_t kToolNameMax = 64;

Status Fault(std::string_view reason, const std::string& param, std::string_view what) {
  return Status(Code::kInvalidArgument, std::string(reason), param + " " + std::string(what))
      .WithParam(param);
}
Status BadValue(const std::string& param, std::string_view what) {
  return Fault("INVALID_FIELD", param, what);
}
Status BadType(const std::string& param, std::string_view what) {
  return Fault("INVALID_TYPE", param, what);
}
Status Missing(const std::string& param) {
  return Fault("MISSING_REQUIRED_PARAMETER", param, "is required");
}

std::string Indexed(std::string_view name, size_t index) {
  return std::string(name) + "[" + std::to_string(index) + "]";
}

// A string that will stand in the prompt.
Status ReadText(const JsonValue& value, const std::string& param, std::string& out) {
  if (!value.is_string()) return BadType(param, "must be a string");
  if (HasLoneSurrogate(value.text))
    return BadValue(param, "holds a lone surrogate, expected Unicode text");
  out = value.text;
  return Status::Ok();
}

Status ReadFlag(const JsonValue& request, const std::string& name, std::optional<bool>& out) {
  const JsonValue* value = request.Find(name);
  if (!value) return Status::Ok();
  if (!value->is_bool()) return BadType(name, "must be true or false");
  out = value->boolean;
  return Status::Ok();
}

Status Print(const JsonValue& value, const std::string& param, std::string& out) {
  const JsonPrintFault fault = AppendJson(value, out);
  if (fault.ok()) return Status::Ok();
  return BadValue(param + fault.path, "holds " + std::string(fault.what));
}

// ---- content ----------------------------------------------------------------------------------

Status ReadPart(const JsonValue& part, const std::string& param, bool named, TextPart& out) {
  if (part.is_string()) return ReadText(part, param, out.text);
  if (!part.is_object()) return BadType(param, "must be a string or an object");
  const JsonValue* type = part.Find("type");
  const JsonValue* text = part.Find("text");
  if (!type && !text) return Missing(param + ".type");
  if (type && !type->is_string()) return BadType(param + ".type", "must be a string");
  static constexpr std::array<std::string_view, 5> kText = {"text", "input_text", "output_text",
                                                            "refusal", "thinking"};
  if (type && std::find(kText.begin(), kText.end(), type->text) == kText.end()) {
    return Fault("UNSUPPORTED_PARAMETER", param + ".type",
                 "is a kind of content that this text-only model does not take; expected text");
  }
  std::string_view key = "text";
  if (!text && type && (type->text == "refusal" || type->text == "thinking")) {
    key = type->text;
    text = part.Find(key);
  }
  if (text) RETURN_IF_ERROR(ReadText(*text, param + "." + std::string(key), out.text));
  const JsonValue* name = named ? part.Find("name") : nullptr;
  return name ? ReadText(*name, param + ".name", out.name) : Status::Ok();
}

Status ReadContent(const JsonValue& message, const std::string& at, Role role,
                   std::vector<TextPart>& parts) {
  const std::string param = at + ".content";
  const JsonValue* content = message.Find("content");
  const bool tool = role == Role::kTool || role == Role::kFunction;
  if (!content) {
    if (tool || role == Role::kAssistant) return parts.emplace_back(), Status::Ok();
    const bool sent = std::any_of(message.members.begin(), message.members.end(),
                                  [](const auto& member) { return member.key == "content"; });
    return sent ? BadType(param, "must be a string or a list of parts, got null") : Missing(param);
  }
  if (content->is_string()) return ReadText(*content, param, parts.emplace_back().text);
  if (!content->is_array()) return BadType(param, "must be a string or a list of parts");
  for (size_t i = 0; i < content->items.size(); ++i) {
    RETURN_IF_ERROR(ReadPart(content->items[i], Indexed(param, i), tool, parts.emplace_back()));
  }
  if (parts.empty()) parts.emplace_back();
  return Status::Ok();
}

// ---- calls and results ------------------------------------------------------------------------

// A string is parsed and printed again; one that is not JSON is quoted as it is.
Status ReadArguments(const JsonValue* arguments, const std::string& param, std::string& out) {
  if (!arguments || (arguments->is_string() && arguments->text.empty())) {
    out = "{}";
    return Status::Ok();
  }
  if (!arguments->is_string()) return Print(*arguments, param, out);
  std::string text;
  RETURN_IF_ERROR(ReadText(*arguments, param, text));
  JsonValue parsed;
  if (ParseJson(text, parsed).ok()) {
    const JsonPrintFault fault = AppendJson(parsed, out);
    return fault.ok() ? Status::Ok() : BadValue(param, "hold " + std::string(fault.what));
  }
  AppendJsonString(text, out);
  return Status::Ok();
}

Status ReadCall(const JsonValue& call, const std::string& at, HistoryCall& out) {
  if (!call.is_object()) return BadType(at, "must be an object");
  if (const JsonValue* id = call.Find("id")) RETURN_IF_ERROR(ReadText(*id, at + ".id", out.id));
  const JsonValue* function = call.Find("function");
  if (!function) return Missing(at + ".function");
  if (!function->is_object()) return BadType(at + ".function", "must be an object");
  const JsonValue* name = function->Find("name");
  if (!name) return Missing(at + ".function.name");
  RETURN_IF_ERROR(ReadText(*name, at + ".function.name", out.name));
  return ReadArguments(function->Find("arguments"), at + ".function.arguments", out.arguments);
}

Status ReadCalls(const JsonValue& message, const std::string& at, std::vector<HistoryCall>& out) {
  const JsonValue* calls = message.Find("tool_calls");
  if (!calls) return Status::Ok();
  const std::string param = at + ".tool_calls";
  if (!calls->is_array()) return BadType(param, "must be a list");
  for (size_t i = 0; i < calls->items.size(); ++i) {
    RETURN_IF_ERROR(ReadCall(calls->items[i], Indexed(param, i), out.emplace_back()));
  }
  return Status::Ok();
}

// The names of results: by the part, by the id of the call, by the message, by position since the
// last list of calls.
class ResultNames final {
 public:
  void NoteCalls(const std::vector<HistoryCall>& calls) {
    if (calls.empty()) return;
    last_calls_ = calls;
    next_ = 0;
    for (const HistoryCall& call : calls) {
      if (!call.id.empty()) by_id_[call.id] = call.name;
    }
  }

  std::vector<ToolResult> Split(const std::vector<TextPart>& parts, const std::string& call_id,
                                const std::string& message_name) {
    std::vector<ToolResult> results;
    for (const TextPart& part : parts) {
      if (results.empty() || !part.name.empty()) {
        results.push_back({NameOf(part.name, call_id, message_name), part.text});
        ++next_;
      } else {
        results.back().text += '\n';
        results.back().text += part.text;
      }
    }
    return results;
  }

 private:
  std::string NameOf(const std::string& own, const std::string& call_id,
                     const std::string& message_name) const {
    if (!own.empty()) return own;
    if (const auto found = by_id_.find(call_id); found != by_id_.end()) return found->second;
    if (!message_name.empty()) return message_name;
    return next_ < last_calls_.size() ? last_calls_[next_].name : "unknown";
  }

  std::unordered_map<std::string, std::string> by_id_;  // the latest call with that id
  std::vector<HistoryCall> last_calls_;
  size_t next_ = 0;
};

// ---- messages ---------------------------------------------------------------------------------

Status ReadRole(const JsonValue& message, const std::string& at, Role& out) {
  const std::string param = at + ".role";
  const JsonValue* role = message.Find("role");
  if (!role) return Missing(param);
  if (!role->is_string()) return BadType(param, "must be a string");
  static constexpr std::pair<std::string_view, Role> kRoles[] = {
      {"system", Role::kSystem},       {"developer", Role::kSystem}, {"user", Role::kUser},
      {"assistant", Role::kAssistant}, {"tool", Role::kTool},        {"function", Role::kFunction}};
  for (const auto& [name, value] : kRoles) {
    if (role->text != name) continue;
    out = value;
    return Status::Ok();
  }
  return BadValue(param, "must be one of system, developer, user, assistant, tool, function");
}

Status ReadMessage(const JsonValue& message, const std::string& at, ResultNames& names,
                   ChatMessage& out) {
  if (!message.is_object()) return BadType(at, "must be an object");
  RETURN_IF_ERROR(ReadRole(message, at, out.role));
  RETURN_IF_ERROR(ReadContent(message, at, out.role, out.parts));
  if (out.role == Role::kAssistant) {
    RETURN_IF_ERROR(ReadCalls(message, at, out.calls));
    names.NoteCalls(out.calls);
  }
  if (out.role == Role::kTool || out.role == Role::kFunction) {
    std::string call_id, name;
    if (const auto* id = message.Find("tool_call_id"))
      RETURN_IF_ERROR(ReadText(*id, at + ".tool_call_id", call_id));
    if (const auto* own = message.Find("name")) RETURN_IF_ERROR(ReadText(*own, at + ".name", name));
    out.results = names.Split(out.parts, call_id, name);
  }
  return Status::Ok();
}

Status ReadMessages(const JsonValue& request, std::vector<ChatMessage>& out) {
  const JsonValue* messages = request.Find("messages");
  if (!messages) return Missing("messages");
  if (!messages->is_array()) return BadType("messages", "must be a list");
  const size_t count = messages->items.size();
  if (count < 1 || count > kMessagesMax) {
    return BadValue("messages", "must have 1 to " + std::to_string(kMessagesMax) +
                                    " entries, got " + std::to_string(count));
  }
  ResultNames names;
  for (size_t i = 0; i < count; ++i) {
    RETURN_IF_ERROR(
        ReadMessage(messages->items[i], Indexed("messages", i), names, out.emplace_back()));
  }
  return Status::Ok();
}

// ---- tools ------------------------------------------------------------------------------------

bool IsToolName(std::string_view name) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  return !name.empty() && name.size() <= kToolNameMax &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}

JsonValue Text(std::string text) {
  JsonValue value;
  value.kind = JsonValue::Kind::kString;
  value.text = std::move(text);
  return value;
}

// {"type": "function", "function": F}, F in the order of vLLM's model: name, description and
// parameters (null where not sent), then the rest.
JsonValue OpenAiForm(const JsonValue& function) {
  JsonValue inner;
  inner.kind = JsonValue::Kind::kObject;
  constexpr std::string_view kFirst[] = {"name", "description", "parameters"};
  for (const std::string_view key : kFirst) {
    const JsonValue* value = function.Find(key);
    inner.members.push_back({std::string(key), value ? *value : JsonValue()});
  }
  for (const auto& member : function.members) {
    if (member.key == "type") continue;
    if (std::find(std::begin(kFirst), std::end(kFirst), member.key) == std::end(kFirst)) {
      inner.members.push_back(member);
    }
  }
  JsonValue outer;
  outer.kind = JsonValue::Kind::kObject;
  outer.members.push_back({"type", Text("function")});
  outer.members.push_back({"function", std::move(inner)});
  return outer;
}

Status ReadTool(const JsonValue& tool, std::string at, bool openai_form, std::string& out) {
  if (!tool.is_object()) return BadType(at, "must be an object");
  const JsonValue* nested = tool.Find("function");
  if (nested) {
    at += ".function";
    if (!nested->is_object()) return BadType(at, "must be an object");
  }
  JsonValue function = nested ? *nested : tool;
  std::erase_if(function.members, [](const auto& member) { return member.key == "strict"; });
  const JsonValue* name = function.Find("name");
  if (!name) return Missing(at + ".name");
  if (!name->is_string()) return BadType(at + ".name", "must be a string");
  if (!IsToolName(name->text)) {
    return BadValue(at + ".name", "must be 1 to 64 letters, digits, '_', '.' or '-'");
  }
  return Print(openai_form ? OpenAiForm(function) : function, at, out);
}

Status ReadTools(const JsonValue& request, bool openai_form, std::vector<std::string>& out) {
  const JsonValue* tools = request.Find("tools");
  if (!tools) return Status::Ok();
  if (!tools->is_array()) return BadType("tools", "must be a list");
  if (tools->items.size() > kToolsMax) {
    return BadValue("tools",
                    "must have at most 128 entries, got " + std::to_string(tools->items.size()));
  }
  for (size_t i = 0; i < tools->items.size(); ++i) {
    RETURN_IF_ERROR(
        ReadTool(tools->items[i], Indexed("tools", i), openai_form, out.emplace_back()));
  }
  return Status::Ok();
}

// ---- how it ends ------------------------------------------------------------------------------

Status ReadEnd(const JsonValue& request, const ChatOptions& options, Conversation& out) {
  std::optional<bool> prompt, open;
  RETURN_IF_ERROR(ReadFlag(request, "add_generation_prompt", prompt));
  RETURN_IF_ERROR(ReadFlag(request, "continue_final_message", open));
  if (!prompt && options.add_generation_prompt_set) prompt = options.add_generation_prompt;
  out.open_end = open.value_or(options.continue_final_message);
  out.add_generation_prompt = prompt.value_or(options.add_generation_prompt && !out.open_end);
  if (!out.open_end) return Status::Ok();
  if (out.add_generation_prompt) {
    return BadValue("add_generation_prompt",
                    "must not be true together with continue_final_message");
  }
  if (out.messages.back().role != Role::kAssistant) {
    return BadValue("continue_final_message", "needs a last message of the role assistant");
  }
  return Status::Ok();
}

Status Read(std::string_view request_json, const ChatOptions& options, Conversation& out) {
  if (!IsValidUtf8(request_json)) {
    return {Code::kInvalidArgument, "INVALID_JSON", "the request is not valid UTF-8"};
  }
  JsonValue request;
  if (const JsonFault fault = ParseJson(request_json, request); !fault.ok()) {
    return {Code::kInvalidArgument, "INVALID_JSON",
            "the request is not JSON: " + std::string(fault.what) + " at byte " +
                std::to_string(fault.at)};
  }
  if (!request.is_object()) {
    return {Code::kInvalidArgument, "INVALID_JSON", "the request is not a JSON object"};
  }
  RETURN_IF_ERROR(ReadMessages(request, out.messages));
  RETURN_IF_ERROR(ReadTools(request, options.tools_openai_form, out.tools));
  if (options.tools_excluded) out.tools.clear();
  return ReadEnd(request, options, out);
}

}  // namespace

std::string JoinedParts(const ChatMessage& message, std::string_view separator) {
  std::string text = message.parts.front().text;
  for (size_t i = 1; i < message.parts.size(); ++i) {
    text += separator;
    text += message.parts[i].text;
  }
  return text;
}

Result<Conversation> ReadConversation(std::string_view request_json, const ChatOptions& options) {
  Conversation conversation;
  RETURN_ERROR_IF(Read(request_json, options, conversation));
  return conversation;
}

}  // namespace levin
