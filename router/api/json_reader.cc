#include "router/api/json_reader.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace levin {
namespace {

namespace json = boost::json;

constexpr size_t kDepthMax = 128;

Status InvalidJson(std::string message) {
  return {Code::kInvalidArgument, "INVALID_JSON", std::move(message)};
}

// At most kDepthMax levels of calls: the parser has seen to it.
bool AllFinite(const json::value& value) {
  switch (value.kind()) {
    case json::kind::double_:
      return std::isfinite(value.get_double());
    case json::kind::array:
      return std::all_of(value.get_array().begin(), value.get_array().end(), AllFinite);
    case json::kind::object:
      return std::all_of(value.get_object().begin(), value.get_object().end(),
                         [](const json::key_value_pair& pair) { return AllFinite(pair.value()); });
    default:
      return true;
  }
}

}  // namespace

Result<json::object> ParseBody(std::string_view body) {
  if (body.empty()) return Error(InvalidJson("the body is empty; send a JSON object"));
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = kDepthMax;
  json::stream_parser parser({}, options);
  const size_t read = parser.write_some(body.data(), body.size(), error);
  if (!error && read < body.size()) error = json::error::extra_data;
  if (!error) parser.finish(error);
  if (error == json::error::too_deep) {
    return Error(InvalidJson("the body is nested deeper than " + std::to_string(kDepthMax) +
                             " levels, which is the limit"));
  }
  if (error) {
    return Error(InvalidJson("the body is not valid JSON: " + error.message() + " near byte " +
                             std::to_string(read)));
  }
  json::value root = parser.release();
  if (!root.is_object()) {
    return Error(InvalidJson("the body must be a JSON object, got " + std::string(KindOf(root))));
  }
  if (!AllFinite(root)) {
    return Error(InvalidJson("the body holds a number that is beyond the range of a double"));
  }
  return std::move(root.get_object());
}

std::string_view KindOf(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return "a boolean";
    case json::kind::int64:
    case json::kind::uint64:
      return "an integer";
    case json::kind::double_:
      return "a number";
    case json::kind::string:
      return "a string";
    case json::kind::array:
      return "an array";
    case json::kind::object:
      return "an object";
  }
  return "?";
}

Status WrongType(std::string path, std::string_view expected, const json::value& got) {
  Status status(Code::kInvalidArgument, "INVALID_TYPE",
                path + " must be " + std::string(expected) + ", got " + std::string(KindOf(got)));
  return std::move(status).WithParam(std::move(path));
}

Status Unsupported(std::string path, const std::string& message) {
  return Status(Code::kInvalidArgument, "UNSUPPORTED_PARAMETER", message)
      .WithParam(std::move(path));
}

Result<int64_t> ReadInteger(const json::value& value, const std::string& path) {
  constexpr double kTwo63 = 9223372036854775808.0;
  if (value.is_int64()) return value.get_int64();
  const bool integral = value.is_uint64() ||
                        (value.is_double() && std::trunc(value.get_double()) == value.get_double());
  if (!integral) return Error(WrongType(path, "an integer", value));
  // -2^63 itself comes as an int64: a double of that value was rounded from a number below it.
  if (value.is_double() && value.get_double() > -kTwo63 && value.get_double() < kTwo63) {
    return static_cast<int64_t>(value.get_double());
  }
  return Error(InvalidArgument(path + " must be an integer from -2^63 to 2^63 - 1, got " +
                               json::serialize(value))
                   .WithParam(path));
}

const json::value* FieldReader::Any(std::string_view key) const {
  const json::value* value = object_.if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::string FieldReader::PathOf(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + '.' + std::string(key);
}

void FieldReader::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

std::optional<double> FieldReader::Number(std::string_view key) {
  const json::value* value = Any(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) return value->to_number<double>();
  Fail(WrongType(PathOf(key), "a number", *value));
  return std::nullopt;
}

std::optional<int64_t> FieldReader::Integer(std::string_view key) {
  const json::value* value = Any(key);
  if (value == nullptr) return std::nullopt;
  Result<int64_t> read = ReadInteger(*value, PathOf(key));
  if (read) return *read;
  Fail(std::move(read).error());
  return std::nullopt;
}

std::optional<bool> FieldReader::Bool(std::string_view key) {
  const json::value* value = Any(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_bool()) return value->get_bool();
  Fail(WrongType(PathOf(key), "true or false", *value));
  return std::nullopt;
}

std::optional<std::string> FieldReader::String(std::string_view key) {
  const json::value* value = Any(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return std::string(value->get_string());
  Fail(WrongType(PathOf(key), "a string", *value));
  return std::nullopt;
}

std::vector<int64_t> FieldReader::Integers(std::string_view key) {
  std::vector<int64_t> out;
  const json::array* array = Array(key);
  if (array == nullptr) return out;
  out.reserve(array->size());
  for (size_t i = 0; i < array->size(); ++i) {
    Result<int64_t> read = ReadInteger((*array)[i], PathOf(key) + '[' + std::to_string(i) + ']');
    if (!read) {
      Fail(std::move(read).error());
      return out;
    }
    out.push_back(*read);
  }
  return out;
}

std::vector<std::string> FieldReader::Strings(std::string_view key) {
  std::vector<std::string> out;
  const json::array* array = Array(key);
  if (array == nullptr) return out;
  for (size_t i = 0; i < array->size(); ++i) {
    const json::value& item = (*array)[i];
    if (!item.is_string()) {
      Fail(WrongType(PathOf(key) + '[' + std::to_string(i) + ']', "a string", item));
      return out;
    }
    out.emplace_back(item.get_string());
  }
  return out;
}

std::vector<std::string> FieldReader::StringOrStrings(std::string_view key) {
  const json::value* value = Any(key);
  if (value == nullptr) return {};
  if (value->is_string()) return {std::string(value->get_string())};
  if (value->is_array()) return Strings(key);
  Fail(WrongType(PathOf(key), "a string or an array of strings", *value));
  return {};
}

const json::array* FieldReader::Array(std::string_view key) {
  const json::value* value = Any(key);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) Fail(WrongType(PathOf(key), "an array", *value));
  return value->if_array();
}

const json::object* FieldReader::Object(std::string_view key) {
  const json::value* value = Any(key);
  if (value == nullptr) return nullptr;
  if (!value->is_object()) Fail(WrongType(PathOf(key), "an object", *value));
  return value->if_object();
}

}  // namespace levin
