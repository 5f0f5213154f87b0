// Longest token at the front of a text: a double-array trie, one memory access a byte.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/types.h"

namespace levin {

// Immutable after construction.
class TokenTrie final {
 public:
  // Distinct texts, none empty; every byte that a text can begin with is a token of its own.
  explicit TokenTrie(std::vector<std::pair<std::string_view, TokenId>> tokens);

  struct Match {
    TokenId token = -1;
    uint32_t bytes = 0;
  };
  // The longest token that `text`, not empty, begins with.
  Match Longest(std::string_view text) const;

  // The longest token that is a proper prefix of this one; -1 if there is none.
  TokenId Prefix(TokenId token) const { return prefix_[token]; }

 private:
  // A node is a place in units_. Its child by byte c stands at base ^ c and names c; bases are
  // distinct, so the byte suffices to tell whose child it is.
  struct Unit {
    uint32_t base : 24 = 0;
    uint32_t label : 8 = 0;
    TokenId token = kFree;
  };
  static constexpr TokenId kFree = -2, kNoToken = -1;

  struct Builder;

  std::vector<Unit> units_;
  std::vector<TokenId> prefix_;  // by token
};

}  // namespace levin
