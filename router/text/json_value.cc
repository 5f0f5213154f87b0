#include "router/text/json_value.h"

#include <optional>
#include <unordered_map>
#include <utility>

#include "router/text/utf8.h"

namespace levin {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

class Parser final {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  JsonFault Parse(JsonValue& out) {
    if (Value(out, 0)) {
      SkipSpace();
      if (pos_ != text_.size()) Fail("text after the value");
    }
    return fault_;
  }

 private:
  bool Fail(std::string_view what) {
    if (fault_.ok()) fault_ = {pos_, what};
    return false;
  }
  bool done() const { return pos_ >= text_.size(); }
  bool Take(char c) {
    if (done() || text_[pos_] != c) return false;
    ++pos_;
    return true;
  }
  void SkipSpace() {
    while (!done() && (text_[pos_] == ' ' || text_[pos_] == '\n' || text_[pos_] == '\r' ||
                       text_[pos_] == '\t'))
      ++pos_;
  }

  bool Value(JsonValue& out, int depth) {
    SkipSpace();
    if (done()) return Fail("the text ends where a value is expected");
    if (depth > kJsonDepthMax) return Fail("nested too deep");
    switch (text_[pos_]) {
      case '{':
        return Object(out, depth);
      case '[':
        return Array(out, depth);
      case '"':
        out.kind = JsonValue::Kind::kString;
        return String(out.text);
      case 't':
        out.kind = JsonValue::Kind::kBool;
        out.boolean = true;
        return Word("true");
      case 'f':
        out.kind = JsonValue::Kind::kBool;
        return Word("false");
      case 'n':
        return Word("null");
      default:
        return Number(out);
    }
  }

  bool Word(std::string_view word) {
    if (text_.compare(pos_, word.size(), word) != 0) return Fail("a value is expected");
    pos_ += word.size();
    return true;
  }

  bool Digits() {
    if (done() || !IsDigit(text_[pos_])) return Fail("a digit is expected");
    while (!done() && IsDigit(text_[pos_])) ++pos_;
    return true;
  }

  bool Number(JsonValue& out) {
    const size_t begin = pos_;
    Take('-');
    if (done() || !IsDigit(text_[pos_])) return Fail("a value is expected");
    if (!Take('0') && !Digits()) return false;
    if (Take('.') && !Digits()) return false;
    if (Take('e') || Take('E')) {
      if (!Take('+')) Take('-');
      if (!Digits()) return false;
    }
    out.kind = JsonValue::Kind::kNumber;
    out.text = text_.substr(begin, pos_ - begin);
    return true;
  }

  std::optional<uint32_t> Hex4() {
    if (pos_ + 4 > text_.size()) return std::nullopt;
    uint32_t value = 0;
    for (const char c : text_.substr(pos_, 4)) {
      const int digit = IsDigit(c)                               ? c - '0'
                        : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                                 : -1;
      if (digit < 0) return std::nullopt;
      value = value << 4 | static_cast<uint32_t>(digit);
    }
    pos_ += 4;
    return value;
  }

  bool UnicodeEscape(std::string& out) {
    const auto first = Hex4();
    if (!first) return Fail("four hexadecimal digits are expected");
    char32_t code = *first;
    if (code >= 0xD800 && code < 0xDC00 && text_.compare(pos_, 2, "\\u") == 0) {
      const size_t back = pos_;
      pos_ += 2;
      const auto second = Hex4();
      if (second && *second >= 0xDC00 && *second < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (*second - 0xDC00);
      } else {
        pos_ = back;
      }
    }
    AppendUtf8(code, out);
    return true;
  }

  bool Escape(std::string& out) {
    if (done()) return Fail("the text ends inside a string");
    switch (text_[pos_++]) {
      case '"':
        out += '"';
        return true;
      case '\\':
        out += '\\';
        return true;
      case '/':
        out += '/';
        return true;
      case 'b':
        out += '\b';
        return true;
      case 'f':
        out += '\f';
        return true;
      case 'n':
        out += '\n';
        return true;
      case 'r':
        out += '\r';
        return true;
      case 't':
        out += '\t';
        return true;
      case 'u':
        return UnicodeEscape(out);
      default:
        --pos_;
        return Fail("no such escape");
    }
  }

  bool String(std::string& out) {
    ++pos_;
    while (!done()) {
      size_t end = pos_;
      while (end < text_.size() && text_[end] != '"' && text_[end] != '\\' &&
             static_cast<unsigned char>(text_[end]) >= 0x20) {
        ++end;
      }
      out.append(text_, pos_, end - pos_);
      pos_ = end;
      if (done()) break;
      if (Take('"')) return true;
      if (!Take('\\')) return Fail("a control character in a string");
      if (!Escape(out)) return false;
    }
    return Fail("the text ends inside a string");
  }

  bool Array(JsonValue& out, int depth) {
    out.kind = JsonValue::Kind::kArray;
    ++pos_;
    SkipSpace();
    if (Take(']')) return true;
    do {
      if (!Value(out.items.emplace_back(), depth + 1)) return false;
      SkipSpace();
    } while (Take(','));
    return Take(']') || Fail("',' or ']' is expected");
  }

  bool Object(JsonValue& out, int depth) {
    out.kind = JsonValue::Kind::kObject;
    ++pos_;
    SkipSpace();
    if (Take('}')) return true;
    std::unordered_map<std::string, size_t> places;
    do {
      SkipSpace();
      if (done() || text_[pos_] != '"') return Fail("a key is expected");
      std::string key;
      if (!String(key)) return false;
      SkipSpace();
      if (!Take(':')) return Fail("':' is expected");
      JsonValue value;
      if (!Value(value, depth + 1)) return false;
      const auto [place, fresh] = places.emplace(key, out.members.size());
      if (fresh) {
        out.members.push_back({std::move(key), std::move(value)});
      } else {
        out.members[place->second].value = std::move(value);
      }
      SkipSpace();
    } while (Take(','));
    return Take('}') || Fail("',' or '}' is expected");
  }

  std::string_view text_;
  size_t pos_ = 0;
  JsonFault fault_;
};

}  // namespace

const JsonValue* JsonValue::Find(std::string_view key) const {
  for (const auto& [name, value] : members) {
    if (name == key) return value.is_null() ? nullptr : &value;
  }
  return nullptr;
}

JsonFault ParseJson(std::string_view text, JsonValue& out) {
  out = {};
  return Parser(text).Parse(out);
}

bool HasLoneSurrogate(std::string_view text) {
  for (size_t at = text.find('\xED'); at != std::string_view::npos;
       at = text.find('\xED', at + 1)) {
    if (at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) >= 0xA0) return true;
  }
  return false;
}

}  // namespace levin
