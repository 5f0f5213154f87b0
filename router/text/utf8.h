// UTF-8, one code point at a time. Nothing here reads past the end of what it is given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace levin {

inline constexpr char32_t kReplacement = 0xFFFD;

struct CodePoint {
  char32_t value = 0;
  uint32_t bytes = 0;  // 1..4; at an ill-formed byte: kReplacement, 1
};

// The code point at the front of `text`, which is not empty.
CodePoint DecodeMultiByte(std::string_view text);
inline CodePoint DecodeUtf8(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return {first, 1};
  return DecodeMultiByte(text);
}

void AppendUtf8(char32_t value, std::string& out);

// Well-formed as Unicode defines it: no overlong forms, no surrogates, nothing above U+10FFFF.
bool IsValidUtf8(std::string_view text);

// Bytes -> whole characters, whatever the pieces. Bytes of an unfinished character are held; each
// maximal ill-formed part becomes U+FFFD as soon as it cannot become a character any more.
class Utf8Assembler final {
 public:
  void Push(std::string_view bytes, std::string& out);
  std::string_view held() const { return held_; }

 private:
  void PushByte(unsigned char byte, std::string& out);

  std::string held_;                        // a proper prefix of a well-formed character
  int missing_ = 0;                         // bytes that it still needs
  unsigned char low_ = 0x80, high_ = 0xBF;  // what the next byte must lie in
};

}  // namespace levin
