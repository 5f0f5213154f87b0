#include "router/text/json_print.h"

#include <charconv>
#include <cmath>
#include <system_error>

namespace levin {
namespace {

constexpr std::string_view kSurrogate = "a lone surrogate, expected a Unicode character";
constexpr std::string_view kTooBig = "a number beyond a double";

// repr() of a Python float: shortest digits; exponent form below 1e-4 and from 1e16 on.
std::string PythonDouble(double value) {
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view printed(buffer, static_cast<size_t>(end - buffer));  // -d.ddde+xx
  const size_t e = printed.find('e');
  std::string_view mantissa = printed.substr(0, e);
  std::string out;
  if (mantissa.front() == '-') {
    out = "-";
    mantissa.remove_prefix(1);
  }
  int exponent = 0;
  const size_t sign = printed[e + 1] == '+' ? e + 2 : e + 1;
  std::from_chars(buffer + sign, end, exponent);
  if (exponent < -4 || exponent >= 16) return out.append(mantissa).append(printed.substr(e));

  std::string digits(1, mantissa.front());
  if (mantissa.size() > 2) digits += mantissa.substr(2);
  if (exponent < 0)
    return out + "0." + std::string(static_cast<size_t>(-exponent) - 1, '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

JsonPrintFault AppendNumber(const std::string& text, std::string& out) {
  if (text.find_first_of(".eE") == std::string::npos) {
    out += text == "-0" ? "0" : text;
    return {};
  }
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec == std::errc::result_out_of_range) {
    // Too small is a zero or a denormal, and those print; only too big has no value.
    value = std::strtod(text.c_str(), nullptr);
    if (std::isinf(value)) return {"", kTooBig};
  }
  out += PythonDouble(value);
  return {};
}

JsonPrintFault AppendArray(const JsonValue& value, std::string& out) {
  out += '[';
  for (size_t i = 0; i < value.items.size(); ++i) {
    if (i > 0) out += ", ";
    if (JsonPrintFault fault = AppendJson(value.items[i], out); !fault.ok()) {
      fault.path = "[" + std::to_string(i) + "]" + fault.path;
      return fault;
    }
  }
  out += ']';
  return {};
}

JsonPrintFault AppendObject(const JsonValue& value, std::string& out) {
  out += '{';
  for (const auto& [key, member] : value.members) {
    if (&member != &value.members.front().value) out += ", ";
    if (HasLoneSurrogate(key)) return {"", kSurrogate};
    AppendJsonString(key, out);
    out += ": ";
    if (JsonPrintFault fault = AppendJson(member, out); !fault.ok()) {
      fault.path = "." + key + fault.path;
      return fault;
    }
  }
  out += '}';
  return {};
}

}  // namespace

void AppendJsonString(std::string_view text, std::string& out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += "\\u00";
          out += kHex[static_cast<unsigned char>(c) >> 4];
          out += kHex[c & 0xF];
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

JsonPrintFault AppendJson(const JsonValue& value, std::string& out) {
  switch (value.kind) {
    case JsonValue::Kind::kNull:
      out += "null";
      return {};
    case JsonValue::Kind::kBool:
      out += value.boolean ? "true" : "false";
      return {};
    case JsonValue::Kind::kNumber:
      return AppendNumber(value.text, out);
    case JsonValue::Kind::kString:
      if (HasLoneSurrogate(value.text)) return {"", kSurrogate};
      AppendJsonString(value.text, out);
      return {};
    case JsonValue::Kind::kArray:
      return AppendArray(value, out);
    case JsonValue::Kind::kObject:
      return AppendObject(value, out);
  }
  return {};
}

}  // namespace levin
