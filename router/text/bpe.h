// Byte-level byte-pair encoding of one pre-token: join the lowest-ranked adjacent pair, leftmost
// first, until no pair has a rank. Never quadratic in the length of the pre-token.
//
// Where the vocabulary allows it (ids in the order of the ranks, every token made by one merge and
// encoded as itself) the pairs are not joined one by one. A list of tokens is the encoding exactly
// if merging would leave each two neighbours apart, so tokens are taken longest first and given up
// again where two do not stand together (the backtracking of GitHub's bpe crate).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/base/types.h"
#include "router/text/token_trie.h"
#include "router/text/vocabulary.h"

namespace levin {

struct Merge {  // its rank is its place in the list
  TokenId left = 0, right = 0, result = 0;
};

// What one thread has found out about neighbours while it encodes a long text: words come back.
class NeighbourMemo final {
 public:
  NeighbourMemo() : slots_(kSlots) {}

 private:
  friend class Bpe;
  static constexpr size_t kSlots = 32768;  // 256 KB: stays in the cache

  std::vector<uint64_t> slots_;  // a pair of tokens and, in the top bit, whether they stay apart
};

// Immutable after construction; keeps a reference to `vocabulary`, which must hold all 256 bytes.
class Bpe final {
 public:
  Bpe(const Vocabulary& vocabulary, const std::vector<Merge>& merges, bool ignore_merges);

  // Appends the tokens of `piece`, which is not empty. `memo` may be nullptr; it belongs to this
  // Bpe and the calling thread.
  void Encode(std::string_view piece, NeighbourMemo* memo, std::vector<TokenId>& out) const;

  // The same by joining pairs: what Encode falls back on, and the reference in its tests.
  void EncodeByMerging(std::string_view piece, std::vector<TokenId>& out) const;

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
  // Whether merging leaves `left` and `right` apart where they stand next to each other, seen from
  // merges below `limit`.
  bool StayApart(TokenId left, TokenId right, TokenId limit) const;
  bool StayApart(TokenId left, TokenId right, NeighbourMemo* memo) const;
  bool MarkWhole(const std::vector<Merge>& merges);
  template <typename DeadEnds>
  void EncodeByMatching(std::string_view piece, DeadEnds dead, NeighbourMemo* memo,
                        std::vector<TokenId>& out) const;
  void EncodeShort(std::string_view piece, std::vector<TokenId>& out) const;
  void EncodeLong(std::string_view piece, std::vector<TokenId>& out) const;

  const Vocabulary& vocabulary_;
  std::array<TokenId, 256> byte_ids_;
  std::vector<Slot> slots_;        // open addressing, a power of two, at most half full
  std::vector<uint64_t> present_;  // bits by hash: most pairs are none, and this stays in the cache
  int present_shift_ = 0;
  std::vector<bool> whole_;  // [vocabulary] the token's bytes, merged, give the token itself
  std::vector<TokenId> left_half_, right_half_;  // [vocabulary] what was merged; a byte: itself
  std::optional<TokenTrie> trie_;                // where matching is allowed
  bool look_up_ = true;                          // the whole piece first
};

}  // namespace levin
