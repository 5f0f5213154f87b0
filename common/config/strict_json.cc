#include "common/config/strict_json.h"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/parse.hpp>
#include <cstdint>
#include <exception>
#include <string>
#include <unordered_set>
#include <vector>

namespace levin {
namespace {

namespace json = boost::json;

// Walks the text and keeps the keys of the objects that are open; the signatures are the library's.
class KeyWatch final {
 public:
  static constexpr std::size_t max_object_size = SIZE_MAX;
  static constexpr std::size_t max_array_size = SIZE_MAX;
  static constexpr std::size_t max_key_size = SIZE_MAX;
  static constexpr std::size_t max_string_size = SIZE_MAX;
  using ErrorCode = json::error_code;

  const std::string& doubled() const { return doubled_; }

  bool on_object_begin(ErrorCode&) {
    open_.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t, ErrorCode&) {
    open_.pop_back();
    return true;
  }
  bool on_key_part(json::string_view part, std::size_t, ErrorCode&) {
    key_ += part;
    return true;
  }
  bool on_key(json::string_view part, std::size_t, ErrorCode& error) {
    key_ += part;
    if (!open_.back().insert(key_).second) {
      doubled_ = key_;
      error = json::error::exception;  // ends the walk; `doubled` says why
      return false;
    }
    key_.clear();
    return true;
  }
  bool on_document_begin(ErrorCode&) { return true; }
  bool on_document_end(ErrorCode&) { return true; }
  bool on_array_begin(ErrorCode&) { return true; }
  bool on_array_end(std::size_t, ErrorCode&) { return true; }
  bool on_string_part(json::string_view, std::size_t, ErrorCode&) { return true; }
  bool on_string(json::string_view, std::size_t, ErrorCode&) { return true; }
  bool on_number_part(json::string_view, ErrorCode&) { return true; }
  bool on_int64(std::int64_t, json::string_view, ErrorCode&) { return true; }
  bool on_uint64(std::uint64_t, json::string_view, ErrorCode&) { return true; }
  bool on_double(double, json::string_view, ErrorCode&) { return true; }
  bool on_bool(bool, ErrorCode&) { return true; }
  bool on_null(ErrorCode&) { return true; }
  bool on_comment_part(json::string_view, ErrorCode&) { return true; }
  bool on_comment(json::string_view, ErrorCode&) { return true; }

 private:
  std::vector<std::unordered_set<std::string>> open_;
  std::string key_;
  std::string doubled_;
};

Result<json::object> Parse(std::string_view text) {
  json::basic_parser<KeyWatch> walk(json::parse_options{});
  json::error_code error;
  walk.write_some(false, text.data(), text.size(), error);
  if (!walk.handler().doubled().empty()) {
    return Error(InvalidArgument("key '" + walk.handler().doubled() + "' occurs twice"));
  }
  error.clear();
  json::value value = json::parse(text, error);
  if (error) return Error(InvalidArgument("is not valid JSON: " + error.message()));
  if (!value.is_object()) return Error(InvalidArgument("is not a JSON object"));
  return std::move(value.get_object());
}

}  // namespace

Result<json::object> ParseStrictObject(std::string_view text) {
  try {
    return Parse(text);
  } catch (const std::exception& error) {  // memory, or a limit of the library
    return Error(InvalidArgument(std::string("cannot be parsed as JSON: ") + error.what()));
  }
}

}  // namespace levin
