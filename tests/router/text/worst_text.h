// The generators of worst.jsonl (TEXT.md): a text of whole units, as long as `bytes` allows.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "router/text/utf8.h"
#include "tests/router/text/json_lines.h"

namespace levin::testing {

class WorstText final {
 public:
  explicit WorstText(const boost::json::value& generator) : generator_(generator.as_object()) {
    if (const auto* seed = generator_.if_contains("seed")) state_ = seed->to_number<uint64_t>();
    if (const auto* of = generator_.if_contains("of")) {
      const std::string text = Text(*of);
      for (std::string_view rest = text; !rest.empty();) {
        const size_t length = DecodeUtf8(rest).bytes;
        letters_.emplace_back(rest.substr(0, length));
        rest.remove_prefix(length);
      }
    }
  }

  std::string Make(size_t bytes) {
    std::string text = Member("head");
    const std::string last = Member("last");
    for (std::string unit = Unit(); text.size() + unit.size() + last.size() <= bytes;
         unit = Unit()) {
      text += unit;
    }
    return text + last;
  }

 private:
  std::string Member(const char* key) const {
    const auto* value = generator_.if_contains(key);
    return value ? Text(*value) : "";
  }
  uint64_t Next() {  // splitmix64
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  }
  void AppendOne(uint64_t first, uint64_t count, std::string& out) {
    AppendUtf8(static_cast<char32_t>(first + Next() % count), out);
  }
  std::string Unit() {
    std::string unit = Member("repeat");
    if (!unit.empty()) return unit;
    if (!letters_.empty()) return letters_[Next() % letters_.size()];
    if (const auto* groups = generator_.if_contains("groups")) {
      for (const auto& group : groups->as_array()) {
        AppendOne(group.at(0).to_number<uint64_t>(), group.at(1).to_number<uint64_t>(), unit);
      }
      return unit;
    }
    AppendOne(generator_.at("first").to_number<uint64_t>(),
              generator_.at("count").to_number<uint64_t>(), unit);
    return unit;
  }

  const boost::json::object& generator_;
  std::vector<std::string> letters_;
  uint64_t state_ = 0;
};

}  // namespace levin::testing
