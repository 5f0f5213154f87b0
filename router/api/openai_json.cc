#include "router/api/openai_json.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "router/api/sampling_json.h"

namespace levin {
namespace {

namespace json = boost::json;

constexpr size_t kMessagesMax = 4096;
constexpr size_t kToolsMax = 128;
constexpr size_t kPromptsMax = 256;
constexpr int64_t kCompletionTokensDefault = 16;  // OpenAI's

Status Missing(const std::string& field) {
  return Status(Code::kInvalidArgument, "MISSING_REQUIRED_PARAMETER", field + " is required")
      .WithParam(field);
}

Status BadValue(const std::string& path, const std::string& message) {
  return InvalidArgument(message).WithParam(path);
}

void CheckCount(FieldReader& reader, const std::string& field, size_t count, size_t most) {
  if (count <= most) return;
  reader.Fail(BadValue(field, field + " may hold at most " + std::to_string(most) +
                                  " entries, got " + std::to_string(count)));
}

// ---- tools

bool IsToolName(std::string_view name) {
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
  return !name.empty() && name.size() <= 64 &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}

// {"type":"function","function":{"name",...}}, or the inner object alone.
Result<std::string> ToolName(const json::value& tool, const std::string& path) {
  if (!tool.is_object()) return Error(WrongType(path, "an object", tool));
  FieldReader outer(tool.get_object(), path);
  const json::object* function = outer.Object("function");
  const std::optional<std::string> type = outer.String("type");
  RETURN_ERROR_IF(outer.status());
  if (type && *type != "function") {
    return Error(BadValue(outer.PathOf("type"), "the type of a tool must be function"));
  }
  const bool nested = function != nullptr;
  if (!nested && type && !outer.Has("name")) return Error(Missing(outer.PathOf("function")));
  FieldReader inner(nested ? *function : tool.get_object(), nested ? path + ".function" : path);
  const std::optional<std::string> name = inner.String("name");
  inner.Object("parameters");  // the template prints it; here only its kind counts
  RETURN_ERROR_IF(inner.status());
  if (!name) return Error(Missing(inner.PathOf("name")));
  if (!IsToolName(*name)) {
    return Error(BadValue(inner.PathOf("name"),
                          "the name of a tool has 1 to 64 letters, digits, '_', '.' or '-'"));
  }
  return *name;
}

std::vector<std::string> ReadToolNames(FieldReader& reader) {
  std::vector<std::string> names;
  const json::array* tools = reader.Array("tools");
  if (tools == nullptr) return names;
  CheckCount(reader, "tools", tools->size(), kToolsMax);
  for (size_t i = 0; i < tools->size() && reader.status().ok(); ++i) {
    Result<std::string> name = ToolName((*tools)[i], "tools[" + std::to_string(i) + "]");
    if (name) {
      names.push_back(*std::move(name));
    } else {
      reader.Fail(std::move(name).error());
    }
  }
  return names;
}

// True: the model may call tools.
bool ReadToolChoice(FieldReader& reader, const std::vector<std::string>& tools) {
  const json::value* choice = reader.Any("tool_choice");
  if (choice == nullptr) return !tools.empty();
  if (choice->is_object()) {
    FieldReader outer(choice->get_object(), "tool_choice");
    const json::object* function = outer.Object("function");
    const std::optional<std::string> name =
        function == nullptr ? std::nullopt
                            : FieldReader(*function, "tool_choice.function").String("name");
    if (!name) {
      reader.Fail(Missing("tool_choice.function.name"));
    } else if (std::find(tools.begin(), tools.end(), *name) == tools.end()) {
      reader.Fail(BadValue("tool_choice", "tool_choice names a function that is not in tools"));
    } else {
      reader.Fail(Unsupported("tool_choice", "tool_choice of one function is not supported yet"));
    }
    return false;
  }
  const std::string mode = reader.String("tool_choice").value_or("");
  if (mode == "none") return false;
  if (mode != "auto" && mode != "required") {
    reader.Fail(
        BadValue("tool_choice", "tool_choice must be none, auto, required or one function"));
  } else if (tools.empty() && !(mode == "auto" && reader.Has("tools"))) {
    reader.Fail(BadValue("tool_choice", "tool_choice " + mode + " needs tools"));
  } else if (mode == "required") {
    reader.Fail(Unsupported("tool_choice", "tool_choice required is not supported yet"));
  }
  return !tools.empty();
}

// ---- chat

void ReadMessages(FieldReader& reader) {
  const json::array* messages = reader.Array("messages");
  if (messages == nullptr) {
    if (!reader.Has("messages")) reader.Fail(Missing("messages"));
    return;
  }
  CheckCount(reader, "messages", messages->size(), kMessagesMax);
  if (messages->empty()) {
    reader.Fail(BadValue("messages", "messages must hold 1 to 4096 messages, got 0"));
  }
}

void ReadChatLogprobs(FieldReader& reader, ChatRequest& out) {
  out.shape.logprobs = reader.Bool("logprobs").value_or(false);
  const std::optional<int64_t> top = reader.Integer("top_logprobs");
  out.inference.logprobs_param = "top_logprobs";
  if (out.shape.logprobs) {
    out.inference.logprobs = top.value_or(0);
  } else if (top.value_or(0) > 0) {
    reader.Fail(BadValue("top_logprobs", "top_logprobs needs logprobs: true"));
  } else if (top.value_or(0) < 0) {
    reader.Fail(
        BadValue("top_logprobs", "top_logprobs must be at least 0, got " + std::to_string(*top)));
  }
}

// What the template reads: kinds only, so that a wrong one is found whatever template is used.
void CheckTemplateFields(FieldReader& reader) {
  const bool continues = reader.Bool("continue_final_message").value_or(false);
  if (continues && reader.Bool("add_generation_prompt").value_or(false)) {
    reader.Fail(BadValue("add_generation_prompt",
                         "add_generation_prompt: true contradicts continue_final_message: true"));
  }
  reader.Object("chat_template_kwargs");
  reader.Bool("add_special_tokens");  // no effect: this tokenizer adds none
  if (reader.Bool("echo").value_or(false)) {
    reader.Fail(Unsupported("echo", "echo is not supported in chat yet"));
  }
}

// ---- completions

Result<std::vector<TokenId>> ReadPromptIds(const json::array& ids, const std::string& path) {
  std::vector<TokenId> out;
  out.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string where = path + '[' + std::to_string(i) + ']';
    ASSIGN_OR_RETURN(const int64_t id, ReadInteger(ids[i], where));
    if (id < 0 || id > std::numeric_limits<TokenId>::max()) {
      return Error(BadValue(where, where + " is no token id: got " + std::to_string(id)));
    }
    out.push_back(static_cast<TokenId>(id));
  }
  return out;
}

Result<CompletionPrompt> ReadPrompt(const json::value& value, const std::string& path) {
  if (value.is_string()) {
    if (value.get_string().empty()) return Error(BadValue(path, path + " must not be empty"));
    return CompletionPrompt(std::string(value.get_string()));
  }
  if (!value.is_array()) {
    return Error(WrongType(path, "a string or an array of token ids", value));
  }
  if (value.get_array().empty()) return Error(BadValue(path, path + " must not be empty"));
  ASSIGN_OR_RETURN(std::vector<TokenId> ids, ReadPromptIds(value.get_array(), path));
  return CompletionPrompt(std::move(ids));
}

// A string, a list of ids, or a list of either: only its first entry tells which.
bool IsOnePrompt(const json::value& prompt) {
  return !prompt.is_array() || prompt.get_array().empty() || prompt.get_array()[0].is_number();
}

Result<std::vector<CompletionPrompt>> ReadPrompts(const FieldReader& reader) {
  const json::value* prompt = reader.Any("prompt");
  if (prompt == nullptr) return Error(Missing("prompt"));
  std::vector<CompletionPrompt> prompts;
  if (IsOnePrompt(*prompt)) {
    ASSIGN_OR_RETURN(prompts.emplace_back(), ReadPrompt(*prompt, "prompt"));
    return prompts;
  }
  const json::array& list = prompt->get_array();
  if (list.size() > kPromptsMax) {
    return Error(BadValue("prompt", "prompt may hold at most " + std::to_string(kPromptsMax) +
                                        " prompts, got " + std::to_string(list.size())));
  }
  for (size_t i = 0; i < list.size(); ++i) {
    ASSIGN_OR_RETURN(prompts.emplace_back(),
                     ReadPrompt(list[i], "prompt[" + std::to_string(i) + "]"));
  }
  return prompts;
}

void ReadCompletionLogprobs(FieldReader& reader, CompletionRequest& out) {
  out.inference.logprobs = reader.Integer("logprobs");
  out.shape.logprobs = out.inference.logprobs.has_value();
  out.shape.echo = reader.Bool("echo").value_or(false);
  if (out.shape.echo && out.shape.logprobs) {
    reader.Fail(Unsupported("echo", "echo together with logprobs is not supported yet"));
  }
}

}  // namespace

Result<ChatRequest> ParseChatRequest(std::string_view body) {
  ASSIGN_OR_RETURN(const json::object object, ParseBody(body));
  FieldReader reader(object);
  ChatRequest out;
  out.model = reader.String("model").value_or("");
  out.request_id = reader.String("request_id").value_or("");
  ReadMessages(reader);
  ReadInference(reader, out.inference);
  ReadShape(reader, out.shape);
  ReadChatLogprobs(reader, out);
  CheckTemplateFields(reader);

  InferenceRequest& inference = out.inference;
  inference.prompt_param = "messages";
  if (const auto tokens = reader.Integer("max_completion_tokens")) {
    inference.max_tokens = tokens;
    inference.max_tokens_param = "max_completion_tokens";
  }
  const std::vector<std::string> tools = ReadToolNames(reader);
  inference.reply = {.chat = true,
                     .parse_tools = ReadToolChoice(reader, tools),
                     .parallel_tool_calls = reader.Bool("parallel_tool_calls").value_or(true),
                     .include_reasoning = reader.Bool("include_reasoning").value_or(true)};
  RefuseUnsupported(reader);
  RETURN_ERROR_IF(reader.status());
  return out;
}

Result<CompletionRequest> ParseCompletionRequest(std::string_view body) {
  ASSIGN_OR_RETURN(const json::object object, ParseBody(body));
  FieldReader reader(object);
  CompletionRequest out;
  out.model = reader.String("model").value_or("");
  out.request_id = reader.String("request_id").value_or("");
  ReadInference(reader, out.inference);
  ReadShape(reader, out.shape);
  ReadCompletionLogprobs(reader, out);
  reader.Bool("add_special_tokens");  // no effect: this tokenizer adds none
  out.inference.max_tokens_least = 0;
  out.inference.default_max_tokens = kCompletionTokensDefault;
  RefuseUnsupported(reader);
  RETURN_ERROR_IF(reader.status());
  ASSIGN_OR_RETURN(out.prompts, ReadPrompts(reader));
  return out;
}

Result<TokenizeRequest> ParseTokenizeRequest(std::string_view body) {
  ASSIGN_OR_RETURN(const json::object object, ParseBody(body));
  FieldReader reader(object);
  TokenizeRequest out;
  out.model = reader.String("model").value_or("");
  out.return_token_strs = reader.Bool("return_token_strs").value_or(false);
  out.chat = reader.Has("messages");
  if (out.chat) {
    ReadMessages(reader);
    ReadToolNames(reader);
    if (reader.Has("chat_template")) {
      reader.Fail(Unsupported("chat_template", "a chat_template in the request is not supported"));
    }
  } else if (reader.Has("prompt")) {
    out.prompt = reader.String("prompt").value_or("");
  } else {
    reader.Fail(Missing("prompt"));
  }
  RETURN_ERROR_IF(reader.status());
  return out;
}

Result<DetokenizeRequest> ParseDetokenizeRequest(std::string_view body) {
  ASSIGN_OR_RETURN(const json::object object, ParseBody(body));
  FieldReader reader(object);
  DetokenizeRequest out;
  out.model = reader.String("model").value_or("");
  if (!reader.Has("tokens")) reader.Fail(Missing("tokens"));
  out.tokens = reader.Integers("tokens");
  RETURN_ERROR_IF(reader.status());
  return out;
}

}  // namespace levin
