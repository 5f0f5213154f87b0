// A libFuzzer dictionary: lines of name="word", with \\, \" and \xAB.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace levin::testing {

// nullopt: a line that is neither empty, a comment nor a word.
std::optional<std::vector<std::string>> ParseWords(std::string_view text);

}  // namespace levin::testing
