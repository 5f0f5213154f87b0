#include "common/log/log_line.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>

namespace levin {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Length of the valid UTF-8 sequence that begins at `text`, 0 if there is none.
size_t SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool beyond = (first == 0xED && second >= 0xA0) || (first == 0xF4 && second >= 0x90);
  return overlong || beyond ? 0 : length;
}

void AppendEscaped(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    const char c = text[0];
    if (length == 0) {
      out += kReplacement;
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (length == 1 && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)) {
      std::array<char, 8> code{};
      std::snprintf(code.data(), code.size(), "\\u%04x", static_cast<unsigned>(c));
      out += code.data();
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
}

void AppendQuoted(std::string_view text, std::string& out) {
  out += '"';
  AppendEscaped(text, out);
  out += '"';
}

void AppendNumber(auto number, std::string& out) {
  std::array<char, 32> text{};
  out.append(text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr);
}

bool NeedsQuotes(std::string_view text) {
  if (text.empty()) return true;
  for (const char c : text) {
    if (c <= ' ' || c > '~' || c == '"' || c == '\\' || c == '=') return true;
  }
  return false;
}

void AppendValue(const LogValue& value, bool json, std::string& out) {
  if (const auto* text = std::get_if<std::string_view>(&value.get())) {
    return json || NeedsQuotes(*text) ? AppendQuoted(*text, out) : void(out += *text);
  }
  if (const auto* flag = std::get_if<bool>(&value.get())) {
    out += *flag ? "true" : "false";
  } else if (const auto* integer = std::get_if<int64_t>(&value.get())) {
    AppendNumber(*integer, out);
  } else if (const double number = std::get<double>(value.get()); std::isfinite(number)) {
    AppendNumber(number, out);
  } else {
    out += "null";  // JSON has no other word for it
  }
}

std::string Timestamp(int64_t unix_ms) {
  const auto seconds = static_cast<std::time_t>(unix_ms / 1000);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 40> text{};
  const size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text.data() + size, text.size() - size, ".%03dZ", static_cast<int>(unix_ms % 1000));
  return text.data();
}

}  // namespace

std::string_view LogLevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "?";
}

std::string FormatJsonLine(const LogLine& line) {
  std::string out = "{\"ts\":\"" + Timestamp(line.unix_ms) + "\",\"level\":\"";
  out += LogLevelName(line.level);
  out += "\",\"component\":";
  AppendQuoted(line.component, out);
  out += ",\"event\":";
  AppendQuoted(line.event, out);
  for (const LogField& field : line.fields) {
    out += ',';
    AppendQuoted(field.key, out);
    out += ':';
    AppendValue(field.value, true, out);
  }
  out += '}';
  return out;
}

std::string FormatTextLine(const LogLine& line) {
  std::string out = Timestamp(line.unix_ms) + ' ';
  out += LogLevelName(line.level);
  out += ' ';
  out += line.component;
  out += ' ';
  out += line.event;
  for (const LogField& field : line.fields) {
    out += ' ';
    out += field.key;
    out += '=';
    AppendValue(field.value, false, out);
  }
  return out;
}

}  // namespace levin
