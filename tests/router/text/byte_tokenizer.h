// A tokenizer folder for tests: 256 bytes, a few merges, added tokens with any flags.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "router/text/tokenizer.h"
#include "router/text/utf8.h"

namespace levin::testing {

class TokenizerFolder final {
 public:
  TokenizerFolder() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    dir_ = std::filesystem::path(::testing::TempDir()) /
           ("levin_" + std::to_string(::getpid()) + "_" + test->name());
    std::filesystem::create_directories(dir_);
    const auto demo = std::filesystem::path(LEVIN_SOURCE_DIR) / "models/levin-demo/tokenizer.json";
    std::ifstream in(demo, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    json = boost::json::parse(text);
    json.at("added_tokens") = boost::json::array();
  }
  ~TokenizerFolder() { std::filesystem::remove_all(dir_); }

  // Ids count from 2000 on.
  void Add(std::string_view content, std::initializer_list<std::string_view> flags) {
    auto& added = json.at("added_tokens").as_array();
    boost::json::object token{{"id", 2000 + static_cast<int64_t>(added.size())},
                              {"content", boost::json::string(content.data(), content.size())}};
    for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized", "special"}) {
      token[flag] = std::find(flags.begin(), flags.end(), flag) != flags.end();
    }
    added.push_back(std::move(token));
  }

  // "/a/0/b": replaced, or added to its object.
  void Set(std::string_view pointer, boost::json::value value) {
    const size_t slash = pointer.rfind('/');
    auto& parent = json.at_pointer({pointer.data(), slash});
    const std::string key(pointer.substr(slash + 1));
    if (parent.is_array()) {
      parent.as_array().at(std::stoul(key)) = std::move(value);
    } else {
      parent.as_object()[key] = std::move(value);
    }
  }

  Result<Tokenizer> Load() {
    std::ofstream(dir_ / "tokenizer.json", std::ios::binary) << boost::json::serialize(json);
    return Tokenizer::Load(dir_);
  }
  void Write(std::string_view name, std::string_view text) {
    std::ofstream(dir_ / name, std::ios::binary) << text;
  }
  const std::filesystem::path& path() const { return dir_; }

  boost::json::value json;  // the demo's file without its added tokens; change it before Load

 private:
  std::filesystem::path dir_;
};

}  // namespace levin::testing
