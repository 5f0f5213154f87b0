#include "router/text/utf8.h"

namespace levin {
namespace {

// Unicode 15, table 3-7: how many bytes follow a lead byte, and the range of the first of them.
struct Lead {
  int following = -1;  // -1: no lead byte
  unsigned char low = 0x80, high = 0xBF;
};

Lead LeadOf(unsigned char byte) {
  if (byte < 0x80) return {0};
  if (byte >= 0xC2 && byte <= 0xDF) return {1};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {2};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {3};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  return {};
}

}  // namespace

CodePoint DecodeMultiByte(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const Lead lead = LeadOf(first);
  if (lead.following <= 0 || text.size() <= static_cast<size_t>(lead.following)) {
    return {lead.following == 0 ? char32_t{first} : kReplacement, 1};
  }
  const auto second = static_cast<unsigned char>(text[1]);
  if (second < lead.low || second > lead.high) return {kReplacement, 1};
  char32_t value = first & (0x3F >> lead.following);
  for (int i = 1; i <= lead.following; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0) != 0x80) return {kReplacement, 1};
    value = value << 6 | (byte & 0x3F);
  }
  return {value, static_cast<uint32_t>(lead.following) + 1};
}

void AppendUtf8(char32_t value, std::string& out) {
  const auto put = [&out](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (value < 0x80) return put(value);
  if (value < 0x800) {
    put(0xC0 | value >> 6);
  } else if (value < 0x10000) {
    put(0xE0 | value >> 12);
    put(0x80 | (value >> 6 & 0x3F));
  } else {
    put(0xF0 | value >> 18);
    put(0x80 | (value >> 12 & 0x3F));
    put(0x80 | (value >> 6 & 0x3F));
  }
  put(0x80 | (value & 0x3F));
}

bool IsValidUtf8(std::string_view text) {
  while (!text.empty()) {
    const CodePoint code = DecodeUtf8(text);
    if (code.value == kReplacement && code.bytes == 1) return false;
    text.remove_prefix(code.bytes);
  }
  return true;
}

void Utf8Assembler::Push(std::string_view bytes, std::string& out) {
  for (const char byte : bytes) PushByte(static_cast<unsigned char>(byte), out);
}

void Utf8Assembler::PushByte(unsigned char byte, std::string& out) {
  if (missing_ > 0 && (byte < low_ || byte > high_)) {
    held_.clear();
    missing_ = 0;
    AppendUtf8(kReplacement, out);
  }
  if (missing_ > 0) {
    held_.push_back(static_cast<char>(byte));
    low_ = 0x80;
    high_ = 0xBF;
    if (--missing_ == 0) {
      out += held_;
      held_.clear();
    }
    return;
  }
  const Lead lead = LeadOf(byte);
  if (lead.following == 0) return out.push_back(static_cast<char>(byte));
  if (lead.following < 0) return AppendUtf8(kReplacement, out);
  held_.assign(1, static_cast<char>(byte));
  missing_ = lead.following;
  low_ = lead.low;
  high_ = lead.high;
}

}  // namespace levin
