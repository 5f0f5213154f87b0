// Small questions about text that may still go on.
#pragma once

#include <string_view>

namespace levin {

inline bool IsBlank(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\v' || c == '\f';
}
inline bool IsLineBreak(char c) { return c == '\n' || c == '\r'; }

// `text` is shorter than the marker and may still become it.
inline bool MayBecome(std::string_view text, std::string_view marker) {
  return text.size() < marker.size() && marker.starts_with(text);
}

}  // namespace levin
