#include "router/text/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "common/base/check.h"
#include "router/text/utf8.h"

namespace levin {
namespace {

// [begin, end): the text outside it is unaffected by what happens inside.
struct Span {
  size_t begin = 0, end = 0;
};

uint8_t CombiningClass(utf8proc_int32_t code) {
  return static_cast<uint8_t>(utf8proc_get_property(code)->combining_class);
}

// A character that does not care about NFC begins a part that never joins what stands before it.
// A span is such a character and the caring ones after it. Spans of one code point that are in form
// (a lone mark of a writing system, mostly) are found by the caller to be unchanged.
Span NextSpan(std::string_view text, size_t from, const CharTable& table) {
  size_t starter = from;
  size_t pos = from;
  for (; pos < text.size();) {
    if (static_cast<unsigned char>(text[pos]) < 0x80) {
      starter = pos++;
      continue;
    }
    const CodePoint code = DecodeUtf8(text.substr(pos));
    if (table.Bits(code.value) & kNfcCare) break;
    starter = pos;
    pos += code.bytes;
  }
  if (pos == text.size()) return {text.size(), text.size()};
  while (pos < text.size()) {
    const CodePoint code = DecodeUtf8(text.substr(pos));
    if (!(table.Bits(code.value) & kNfcCare)) break;
    pos += code.bytes;
  }
  return {starter, pos};
}

std::vector<utf8proc_int32_t> Decompose(std::string_view text) {
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(text.size());
  while (!text.empty()) {
    const CodePoint code = DecodeUtf8(text);
    utf8proc_int32_t parts[32];
    int boundary = 0;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code.value), parts, 32,
                                               UTF8PROC_DECOMPOSE, &boundary);
    CHECK(count > 0 && count <= 32, count);
    codes.insert(codes.end(), parts, parts + count);
    text.remove_prefix(code.bytes);
  }
  return codes;
}

// Each run of marks sorted by combining class, equal ones in their order.
void OrderMarks(std::vector<utf8proc_int32_t>& codes) {
  for (auto begin = codes.begin(); begin != codes.end();) {
    if (CombiningClass(*begin) == 0) {
      ++begin;
      continue;
    }
    const auto end =
        std::find_if(begin, codes.end(), [](auto code) { return CombiningClass(code) == 0; });
    std::stable_sort(begin, end,
                     [](auto a, auto b) { return CombiningClass(a) < CombiningClass(b); });
    begin = end;
  }
}

void AppendNormalised(std::string_view text, std::string& out) {
  std::vector<utf8proc_int32_t> codes = Decompose(text);
  OrderMarks(codes);
  const auto count =
      utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  CHECK(count >= 0, count);
  for (utf8proc_ssize_t i = 0; i < count; ++i) AppendUtf8(static_cast<char32_t>(codes[i]), out);
}

}  // namespace

std::string_view ToNfc(std::string_view text, const CharTable& table, std::string& storage) {
  Span span = NextSpan(text, 0, table);
  if (span.begin == text.size()) return text;
  storage.clear();
  storage.reserve(text.size() + 16);
  size_t done = 0;
  while (span.begin < text.size()) {
    storage.append(text, done, span.begin - done);
    AppendNormalised(text.substr(span.begin, span.end - span.begin), storage);
    done = span.end;
    span = NextSpan(text, done, table);
  }
  storage.append(text, done);
  return storage;
}

}  // namespace levin
