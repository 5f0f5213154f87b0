// JSON as Python reads it, where a general library would lose what the templates need: the order of
// keys, integers of any length, numbers as they were written (text.md 4.6).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace levin {

struct JsonMember;

struct JsonValue {
  enum class Kind : uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  bool boolean = false;
  // A number as it was written, or a string's characters. An escaped lone surrogate stands as the
  // three bytes that UTF-8 would give it: HasLoneSurrogate.
  std::string text;
  std::vector<JsonValue> items;
  std::vector<JsonMember> members;  // a repeated key: last value, first place

  bool is_null() const { return kind == Kind::kNull; }
  bool is_bool() const { return kind == Kind::kBool; }
  bool is_number() const { return kind == Kind::kNumber; }
  bool is_string() const { return kind == Kind::kString; }
  bool is_array() const { return kind == Kind::kArray; }
  bool is_object() const { return kind == Kind::kObject; }

  // The member, or nullptr when absent or null or this is no object.
  const JsonValue* Find(std::string_view key) const;
};

struct JsonMember {
  std::string key;
  JsonValue value;
};

inline constexpr int kJsonDepthMax = 256;

struct JsonFault {
  size_t at = 0;          // byte of the text
  std::string_view what;  // "" when there is none
  bool ok() const { return what.empty(); }
};

// RFC 8259 and nothing more (no NaN, no control characters in strings). `text` is valid UTF-8.
JsonFault ParseJson(std::string_view text, JsonValue& out);

bool HasLoneSurrogate(std::string_view text);

}  // namespace levin
