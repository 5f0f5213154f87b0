#include "router/text/token_trie.h"

#include <algorithm>

#include "common/base/check.h"

namespace levin {

// Places children block by block (256 units each), in the last few blocks that have room.
struct TokenTrie::Builder {
  using Tokens = std::vector<std::pair<std::string_view, TokenId>>;

  const Tokens& tokens;
  TokenTrie& trie;
  std::vector<bool> base_taken{};
  std::vector<uint16_t> room{};  // free units of each block
  size_t first_open = 0;         // no block before has enough room to look at

  void AddBlock() {
    trie.units_.resize(trie.units_.size() + 256);
    base_taken.resize(trie.units_.size());
    room.push_back(256);
    CHECK(trie.units_.size() < (size_t{1} << 24));
  }

  bool Fits(uint32_t base, const std::vector<uint8_t>& labels) const {
    if (base_taken[base]) return false;
    return std::all_of(labels.begin(), labels.end(),
                       [&](uint8_t label) { return trie.units_[base ^ label].token == kFree; });
  }

  uint32_t FindBase(const std::vector<uint8_t>& labels) {
    constexpr size_t kBlocksTried = 4;
    while (first_open < room.size() && room[first_open] == 0) ++first_open;
    if (room.size() > first_open + kBlocksTried) first_open = room.size() - kBlocksTried;
    for (size_t block = first_open; block < room.size(); ++block) {
      if (room[block] < labels.size()) continue;
      for (uint32_t low = 0; low < 256; ++low) {
        const auto base = static_cast<uint32_t>(block * 256) + low;
        if (Fits(base, labels)) return base;
      }
    }
    AddBlock();
    return static_cast<uint32_t>(trie.units_.size() - 256);
  }

  // tokens[first, last) share their first `depth` bytes, which lead to `node`; `longest` is the
  // longest token on the way.
  void Build(uint32_t node, size_t first, size_t last, size_t depth, TokenId longest) {
    if (tokens[first].first.size() == depth) {
      const TokenId token = tokens[first].second;
      trie.units_[node].token = token;
      trie.prefix_[token] = longest;
      longest = token;
      ++first;
    }
    if (first == last) return;
    std::vector<uint8_t> labels;
    std::vector<size_t> begins;
    for (size_t i = first; i < last; ++i) {
      const auto label = static_cast<uint8_t>(tokens[i].first[depth]);
      if (!labels.empty() && labels.back() == label) continue;
      labels.push_back(label);
      begins.push_back(i);
    }
    begins.push_back(last);
    const uint32_t base = FindBase(labels);
    base_taken[base] = true;
    trie.units_[node].base = base & 0xFFFFFF;
    for (const uint8_t label : labels) {
      trie.units_[base ^ label] = {0, label, kNoToken};
      --room[(base ^ label) / 256];
    }
    for (size_t i = 0; i < labels.size(); ++i) {
      Build(base ^ labels[i], begins[i], begins[i + 1], depth + 1, longest);
    }
  }
};

TokenTrie::TokenTrie(std::vector<std::pair<std::string_view, TokenId>> tokens) {
  std::sort(tokens.begin(), tokens.end());
  TokenId highest = 0;
  for (const auto& [bytes, token] : tokens) highest = std::max(highest, token);
  prefix_.assign(static_cast<size_t>(highest) + 1, -1);
  Builder builder{tokens, *this};
  builder.AddBlock();
  units_[0].token = kNoToken;  // the root; no base is 0, so no leaf seems to have children
  builder.room[0] = 255;
  builder.base_taken[0] = true;
  builder.Build(0, 0, tokens.size(), 0, -1);
}

TokenTrie::Match TokenTrie::Longest(std::string_view text) const {
  Match longest;
  uint32_t node = 0;
  for (uint32_t i = 0; i < text.size(); ++i) {
    const auto label = static_cast<uint8_t>(text[i]);
    const uint32_t base = units_[node].base;
    if (base == 0) break;
    node = base ^ label;
    const Unit& unit = units_[node];
    if (unit.label != label || unit.token == kFree) break;
    if (unit.token >= 0) longest = {unit.token, i + 1};
  }
  return longest;
}

}  // namespace levin
