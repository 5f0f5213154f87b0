// What the tokenizer must know of each code point: the classes of the split pattern (text.md 2.3)
// and whether NFC has to look at it. Classes come from utf8proc's Unicode version; whitespace is
// written out, since it is the property White_Space and no engine's idea of \s.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace levin {

// Bits of a code point. Every letter has exactly one of the first three.
enum CharBit : uint8_t {
  kUpper = 1,      // Lu, Lt
  kLower = 2,      // Ll
  kCaseless = 4,   // Lm, Lo
  kMark = 8,       // M
  kNumber = 16,    // N
  kSpace = 32,     // White_Space
  kNewline = 64,   // CR, LF; these have kSpace too
  kNfcCare = 128,  // a combining class, or a quick check that is not "yes"
};
inline constexpr uint8_t kLetter = kUpper | kLower | kCaseless;

bool IsWhiteSpace(char32_t code);

// Immutable after construction; about 60 KB. Building it takes some milliseconds.
class CharTable final {
 public:
  CharTable();

  uint8_t Bits(char32_t code) const { return blocks_[block_of_[code >> 8]][code & 0xFF]; }

 private:
  using Block = std::array<uint8_t, 256>;

  std::vector<uint16_t> block_of_;
  std::vector<Block> blocks_;  // equal blocks are stored once
};

}  // namespace levin
