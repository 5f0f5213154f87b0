// Byte-level byte-pair encoding of one pre-token: join the lowest-ranked adjacent pair, leftmost
// first, until no pair has a rank. Never quadratic in the length of the pre-token.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/types.h"
#include "router/text/vocabulary.h"

namespace levin {

struct Merge {  // its rank is its place in the list
  TokenId left = 0, right = 0, result = 0;
};

// Immutable after construction; keeps a reference to `vocabulary`, which must hold all 256 bytes.
class Bpe final {
 public:
  Bpe(const Vocabulary& vocabulary, const std::vector<Merge>& merges, bool ignore_merges);

  // Appends the tokens of `piece`.
  void Encode(std::string_view piece, std::vector<TokenId>& out) const;

 private:
  struct Slot {
    uint64_t key = kNoKey;
    int32_t rank = 0;
    TokenId result = 0;
  };
  static constexpr uint64_t kNoKey = ~uint64_t{0};

  // nullptr when the two never join.
  const Slot* Find(TokenId left, TokenId right) const;
  int32_t Rank(TokenId left, TokenId right) const;
  void EncodeShort(std::string_view piece, std::vector<TokenId>& out) const;
  void EncodeLong(std::string_view piece, std::vector<TokenId>& out) const;

  const Vocabulary& vocabulary_;
  std::array<TokenId, 256> byte_ids_;
  std::vector<Slot> slots_;   // open addressing, a power of two, at most half full
  std::vector<bool> whole_;   // [vocabulary] the token's bytes, merged, give the token itself
};

}  // namespace levin
