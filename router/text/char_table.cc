#include "router/text/char_table.h"

#include <utf8proc.h>

#include <map>

namespace levin {
namespace {

constexpr char32_t kCodePoints = 0x110000;

uint8_t ClassOf(char32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT:
      return kUpper;
    case UTF8PROC_CATEGORY_LL:
      return kLower;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return kCaseless;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return kMark;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return kNumber;
    default:
      return 0;
  }
}

// Marks in `care` what decomposes for good, and the second half of everything that composes.
void NoteDecomposition(char32_t code, std::vector<bool>& care) {
  utf8proc_int32_t parts[32];
  int boundary = 0;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), parts, 32,
                                             UTF8PROC_DECOMPOSE, &boundary);
  if (count == 1 && parts[0] == static_cast<utf8proc_int32_t>(code)) return;
  const auto last = parts[count - 1];
  const auto composed = utf8proc_normalize_utf32(
      parts, count, static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  const bool stays = composed == 1 && parts[0] == static_cast<utf8proc_int32_t>(code);
  care[stays ? static_cast<char32_t>(last) : code] = true;
}

std::vector<bool> FindNfcCare() {
  std::vector<bool> care(kCodePoints);
  for (char32_t code = 0x80; code < kCodePoints; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    const auto* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(code));
    if (property->combining_class != 0) care[code] = true;
    const bool hangul = code >= 0xAC00 && code < 0xD7A4;
    if (hangul || property->decomp_seqindex != UINT16_MAX) NoteDecomposition(code, care);
  }
  return care;
}

}  // namespace

bool IsWhiteSpace(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || code == 0x20 || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

CharTable::CharTable() {
  const std::vector<bool> care = FindNfcCare();
  std::map<Block, uint16_t> known;
  for (char32_t first = 0; first < kCodePoints; first += 256) {
    Block block;
    for (char32_t i = 0; i < 256; ++i) {
      const char32_t code = first + i;
      uint8_t bits = ClassOf(code);
      if (IsWhiteSpace(code)) bits |= kSpace;
      if (code == '\r' || code == '\n') bits |= kNewline;
      if (care[code]) bits |= kNfcCare;
      block[i] = bits;
    }
    const auto [at, fresh] = known.emplace(block, static_cast<uint16_t>(blocks_.size()));
    if (fresh) blocks_.push_back(block);
    block_of_.push_back(at->second);
  }
}

}  // namespace levin
