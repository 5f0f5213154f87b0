// Golden files: JSON, one value a line or one array.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/types.h"
#include "tests/support/golden.h"

namespace levin::testing {

inline std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return std::move(out).str();
}

inline boost::json::value ParseJson(std::string_view text) {
  return boost::json::parse({text.data(), text.size()});
}

inline std::vector<boost::json::value> ReadJsonLines(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<boost::json::value> lines;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) lines.push_back(ParseJson(line));
  }
  return lines;
}

inline std::string Text(const boost::json::value& value) {
  return {value.get_string().data(), value.get_string().size()};
}

inline std::vector<TokenId> Ids(const boost::json::value& value) {
  std::vector<TokenId> ids;
  for (const auto& id : value.as_array()) ids.push_back(static_cast<TokenId>(id.as_int64()));
  return ids;
}

// The golden files of that name (relative to a golden root) in every root.
inline std::vector<std::filesystem::path> GoldenFiles(std::string_view folder,
                                                      std::string_view name) {
  std::vector<std::filesystem::path> files;
  for (const auto& dir : GoldenDirs(folder)) {
    std::error_code ignored;
    if (std::filesystem::exists(dir / name, ignored)) files.push_back(dir / name);
  }
  return files;
}

}  // namespace levin::testing
