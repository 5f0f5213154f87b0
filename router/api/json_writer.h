// Writes JSON text, keys in the order of the calls. Strings that are not valid UTF-8 are repaired
// with U+FFFD: whatever a message was made of, what leaves is JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace levin {

class JsonWriter final {
 public:
  JsonWriter& BeginObject();
  JsonWriter& EndObject();
  JsonWriter& BeginArray();
  JsonWriter& EndArray();

  JsonWriter& Key(std::string_view key);
  JsonWriter& String(std::string_view text);
  JsonWriter& Integer(int64_t value);
  JsonWriter& Number(double value);  // shortest that reads back equal; finite
  JsonWriter& Bool(bool value);
  JsonWriter& Null();
  JsonWriter& Raw(std::string_view json);  // a value that is JSON already

  JsonWriter& Field(std::string_view key, std::string_view text) { return Key(key).String(text); }
  JsonWriter& Field(std::string_view key, const char* text) { return Key(key).String(text); }
  JsonWriter& Field(std::string_view key, int64_t value) { return Key(key).Integer(value); }
  JsonWriter& NullField(std::string_view key) { return Key(key).Null(); }

  std::string Take() { return std::move(text_); }

 private:
  void BeforeValue();
  void Quote(std::string_view text);

  std::string text_;
  bool comma_ = false;  // a value stands before the next one in this container
};

}  // namespace levin
