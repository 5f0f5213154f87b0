#include "tests/fuzz/replay_words.h"

#include <cstdlib>

namespace levin::testing {
namespace {

std::optional<std::string> Unquoted(std::string_view quoted) {
  std::string word;
  for (size_t i = 0; i < quoted.size(); ++i) {
    if (quoted[i] != '\\') {
      word += quoted[i];
    } else if (i + 3 < quoted.size() && quoted[i + 1] == 'x') {
      word +=
          static_cast<char>(std::strtol(std::string(quoted.substr(i + 2, 2)).c_str(), nullptr, 16));
      i += 3;
    } else if (i + 1 < quoted.size() && (quoted[i + 1] == '\\' || quoted[i + 1] == '"')) {
      word += quoted[++i];
    } else {
      return std::nullopt;
    }
  }
  return word;
}

}  // namespace

std::optional<std::vector<std::string>> ParseWords(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#') continue;
    const size_t open = line.find('"');
    if (open == line.npos || line.size() < open + 2 || line.back() != '"') return std::nullopt;
    const auto word = Unquoted(line.substr(open + 1, line.size() - open - 2));
    if (!word) return std::nullopt;
    words.push_back(*word);
  }
  return words;
}

}  // namespace levin::testing
