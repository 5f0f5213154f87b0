// The arguments of a call while they stream (text.md 8.1): a JSON value, followed byte by byte.
#pragma once

#include <cstdint>
#include <string>

namespace levin {

enum class Scan : uint8_t {
  kMore,        // the byte was taken
  kDone,        // it was taken and was the last one
  kDoneBefore,  // the value ended before this byte, which was not taken
  kBroken,      // the byte was not taken and cannot stand here
};

// Characters of a JSON string behind its opening quote, unescaped. Lone surrogates become U+FFFD.
class StringScanner final {
 public:
  Scan Step(char c, std::string& out);

 private:
  void EndUnit(std::string& out);

  enum class State : uint8_t { kText, kEscape, kHex } state_ = State::kText;
  uint32_t unit_ = 0;  // of the escape being read
  int digits_ = 0;
  uint32_t high_ = 0;  // a high surrogate that waits for its other half
};

// Any JSON value: only depth, strings and escapes are followed, the bytes are the model's own. An
// object or array comes out as it stands, a string unescaped, null and "" as {}.
class ArgumentScanner final {
 public:
  // Whether a value can begin with c.
  static bool Begins(char c);

  // Appends to `out` what is now known of the arguments. '<' outside a string breaks the value.
  Scan Step(char c, std::string& out);

 private:
  Scan StepNested(char c, std::string& out);

  enum class State : uint8_t { kStart, kNested, kString, kWord, kNull } state_ = State::kStart;
  StringScanner string_;
  int depth_ = 0;
  bool quoted_ = false, escaped_ = false;  // inside a nested value
  bool empty_ = true;                      // the string so far
};

}  // namespace levin
