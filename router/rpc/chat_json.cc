#include <algorithm>
#include <boost/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "router/rpc/inference_codec.h"

namespace levin {
namespace {

namespace json = boost::json;

constexpr int kDepthMax = 64;

// Keys in order: a map of protobuf has none, and a prompt must not depend on chance.
json::value ToJson(const google::protobuf::Value& value, int depth);

json::value ToJson(const google::protobuf::Struct& fields, int depth) {
  std::vector<std::string_view> keys;
  for (const auto& [key, value] : fields.fields()) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  json::object out;
  for (std::string_view key : keys) {
    out[key] = ToJson(fields.fields().at(std::string(key)), depth + 1);
  }
  return out;
}

// Whole numbers as such: Struct knows only doubles, a schema says "maximum": 5.
json::value NumberJson(double number) {
  const auto whole = static_cast<int64_t>(number);
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (number > -kExact && number < kExact && static_cast<double>(whole) == number) return whole;
  return number;
}

json::value ToJson(const google::protobuf::Value& value, int depth) {
  if (depth > kDepthMax) return nullptr;
  switch (value.kind_case()) {
    case google::protobuf::Value::kNumberValue:
      return NumberJson(value.number_value());
    case google::protobuf::Value::kStringValue:
      return json::string(value.string_value());
    case google::protobuf::Value::kBoolValue:
      return value.bool_value();
    case google::protobuf::Value::kStructValue:
      return ToJson(value.struct_value(), depth);
    case google::protobuf::Value::kListValue: {
      json::array out;
      for (const auto& one : value.list_value().values()) out.push_back(ToJson(one, depth + 1));
      return out;
    }
    case google::protobuf::Value::kNullValue:
    case google::protobuf::Value::KIND_NOT_SET:
      return nullptr;
  }
  return nullptr;
}

Result<json::value> ParseObject(const std::string& text, const std::string& path) {
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = kDepthMax;
  json::value value = json::parse(text, error, {}, options);
  if (error || !value.is_object()) {
    return Error(InvalidArgument(path + " must be the JSON text of an object").WithParam(path));
  }
  return value;
}

json::array PartsJson(const v1::ChatMessage& message) {
  json::array parts;
  for (const v1::ContentPart& part : message.parts()) {
    parts.push_back(json::object{{"type", "text"}, {"text", part.text()}});
  }
  return parts;
}

json::array CallsJson(const v1::ChatMessage& message) {
  json::array calls;
  for (const v1::ToolCall& call : message.tool_calls()) {
    calls.push_back(json::object{
        {"id", call.id()},
        {"type", "function"},
        {"function", json::object{{"name", call.name()}, {"arguments", call.arguments_json()}}}});
  }
  return calls;
}

json::object MessageJson(const v1::ChatMessage& message) {
  json::object out{{"role", message.role()}};
  if (message.parts_size() > 0) out["content"] = PartsJson(message);
  if (message.tool_calls_size() > 0) out["tool_calls"] = CallsJson(message);
  if (!message.tool_call_id().empty()) out["tool_call_id"] = message.tool_call_id();
  if (!message.name().empty()) out["name"] = message.name();
  if (!message.reasoning().empty()) out["reasoning_content"] = message.reasoning();
  return out;
}

Result<json::object> ToolJson(const v1::Tool& tool, const std::string& path) {
  json::object function{{"name", tool.name()}};
  if (!tool.description().empty()) function["description"] = tool.description();
  if (!tool.parameters_json().empty()) {
    ASSIGN_OR_RETURN(function["parameters"],
                     ParseObject(tool.parameters_json(), path + ".parameters_json"));
  } else if (tool.has_parameters()) {
    function["parameters"] = ToJson(tool.parameters(), 0);
  }
  return json::object{{"type", "function"}, {"function", std::move(function)}};
}

}  // namespace

Result<std::string> ChatJson(const v1::ChatRequest& request) {
  json::array messages;
  for (const v1::ChatMessage& message : request.messages()) {
    messages.push_back(MessageJson(message));
  }
  json::object out{{"messages", std::move(messages)}};
  json::array tools;
  for (int i = 0; i < request.tools_size(); ++i) {
    ASSIGN_OR_RETURN(json::object tool,
                     ToolJson(request.tools(i), "tools[" + std::to_string(i) + "]"));
    tools.push_back(std::move(tool));
  }
  if (!tools.empty()) out["tools"] = std::move(tools);
  if (request.has_add_generation_prompt()) {
    out["add_generation_prompt"] = request.add_generation_prompt();
  }
  if (request.has_continue_final_message()) {
    out["continue_final_message"] = request.continue_final_message();
  }
  if (!request.template_kwargs_json().empty()) {
    ASSIGN_OR_RETURN(out["chat_template_kwargs"],
                     ParseObject(request.template_kwargs_json(), "template_kwargs_json"));
  }
  return json::serialize(out);
}

}  // namespace levin
