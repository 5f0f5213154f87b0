#include "router/api/json_writer.h"

#include <charconv>
#include <cmath>

#include "common/base/check.h"
#include "router/text/utf8.h"

namespace levin {
namespace {

void AppendEscaped(unsigned char c, std::string& out) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    default:
      break;
  }
  if (c >= 0x20) {
    out += static_cast<char>(c);
    return;
  }
  constexpr char kHex[] = "0123456789abcdef";
  out += "\\u00";
  out += kHex[c >> 4];
  out += kHex[c & 15];
}

std::string Repaired(std::string_view text) {
  std::string out;
  Utf8Assembler characters;
  characters.Push(text, out);
  if (!characters.held().empty()) AppendUtf8(kReplacement, out);
  return out;
}

}  // namespace

void JsonWriter::BeforeValue() {
  if (comma_) text_ += ',';
  comma_ = true;
}

JsonWriter& JsonWriter::BeginObject() {
  BeforeValue();
  text_ += '{';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::EndObject() {
  text_ += '}';
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::BeginArray() {
  BeforeValue();
  text_ += '[';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::EndArray() {
  text_ += ']';
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  BeforeValue();
  Quote(key);
  text_ += ':';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::String(std::string_view text) {
  BeforeValue();
  Quote(text);
  return *this;
}

JsonWriter& JsonWriter::Integer(int64_t value) {
  BeforeValue();
  text_ += std::to_string(value);
  return *this;
}

JsonWriter& JsonWriter::Number(double value) {
  CHECK(std::isfinite(value), value);
  BeforeValue();
  char buffer[32];
  const std::string_view digits(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
  text_ += digits;
  // Stays a floating-point number where types are told apart by spelling.
  if (digits.find_first_of(".e") == std::string_view::npos) text_ += ".0";
  return *this;
}

JsonWriter& JsonWriter::Bool(bool value) {
  BeforeValue();
  text_ += value ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::Null() {
  BeforeValue();
  text_ += "null";
  return *this;
}

JsonWriter& JsonWriter::Raw(std::string_view json) {
  BeforeValue();
  text_ += json;
  return *this;
}

void JsonWriter::Quote(std::string_view text) {
  if (!IsValidUtf8(text)) return Quote(Repaired(text));
  text_ += '"';
  for (char c : text) AppendEscaped(static_cast<unsigned char>(c), text_);
  text_ += '"';
}

}  // namespace levin
