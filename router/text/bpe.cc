#include "router/text/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <utility>

#include "common/base/check.h"

namespace levin {
namespace {

constexpr int32_t kNoRank = std::numeric_limits<int32_t>::max();
constexpr size_t kShort = 64;  // up to here a scan for the minimum beats a heap

uint64_t KeyOf(TokenId left, TokenId right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

uint64_t HashOf(uint64_t key) {  // its upper bits are the better ones
  const uint64_t mixed = key * 0x9E3779B97F4A7C15u;
  return mixed ^ mixed >> 32;
}

// Ends of tokens from which no way leads on.
class FewDeadEnds final {
 public:
  bool Has(size_t at) const { return bits_ >> at & 1; }
  void Add(size_t at) { bits_ |= uint64_t{1} << at; }

 private:
  uint64_t bits_ = 0;
};
class ManyDeadEnds final {
 public:
  explicit ManyDeadEnds(size_t bytes) : bits_(bytes + 1) {}
  bool Has(size_t at) const { return bits_[at]; }
  void Add(size_t at) { bits_[at] = true; }

 private:
  std::vector<bool> bits_;
};

}  // namespace

Bpe::Bpe(const Vocabulary& vocabulary, const std::vector<Merge>& merges, bool ignore_merges)
    : vocabulary_(vocabulary) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    byte_ids_[byte] = vocabulary.Find(std::string_view(&c, 1));
    CHECK(byte_ids_[byte] >= 0, byte);
  }
  slots_.resize(std::bit_ceil(2 * merges.size() + 2));
  const size_t bits = std::bit_ceil(8 * merges.size() + 64);
  present_.resize(bits / 64);
  present_shift_ = 64 - std::countr_zero(bits);
  const size_t mask = slots_.size() - 1;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const uint64_t key = KeyOf(merges[rank].left, merges[rank].right);
    size_t at = HashOf(key) & mask;
    while (slots_[at].key != kNoKey && slots_[at].key != key) at = (at + 1) & mask;
    if (slots_[at].key == key) continue;  // a repeated merge: the first counts
    slots_[at] = {key, static_cast<int32_t>(rank), merges[rank].result};
    const uint64_t bit = HashOf(key) >> present_shift_;
    present_[bit / 64] |= uint64_t{1} << bit % 64;
  }
  if (MarkWhole(merges)) {
    std::vector<std::pair<std::string_view, TokenId>> tokens;
    for (const TokenId byte : byte_ids_) tokens.emplace_back(vocabulary.Bytes(byte), byte);
    for (const Merge& merge : merges)
      tokens.emplace_back(vocabulary.Bytes(merge.result), merge.result);
    trie_.emplace(std::move(tokens));
  }
  if (ignore_merges) whole_.assign(vocabulary.size(), true);
  look_up_ = ignore_merges || !trie_;  // matching finds a piece that is a token at its first step
}

// True if matching may stand for merging.
bool Bpe::MarkWhole(const std::vector<Merge>& merges) {
  whole_.assign(vocabulary_.size(), false);
  left_half_.resize(vocabulary_.size());
  right_half_.resize(vocabulary_.size());
  TokenId last = -1;
  for (const TokenId byte : byte_ids_) {
    left_half_[byte] = right_half_[byte] = byte;
    whole_[byte] = true;
    last = std::max(last, byte);
  }
  bool ordered = true;
  for (const Merge& merge : merges) {
    ordered =
        ordered && merge.result > last && merge.left < merge.result && merge.right < merge.result;
    last = merge.result;
    left_half_[merge.result] = merge.left;
    right_half_[merge.result] = merge.right;
  }
  if (ordered) {
    for (const Merge& merge : merges) {
      whole_[merge.result] = whole_[merge.left] && whole_[merge.right] &&
                             StayApart(merge.left, merge.right, merge.result);
      ordered = ordered && whole_[merge.result];
    }
    return ordered;
  }
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < vocabulary_.size(); ++id) {
    const std::string_view bytes = vocabulary_.Bytes(id);
    if (bytes.empty()) continue;
    ids.clear();
    EncodeByMerging(bytes, ids);
    whole_[id] = ids.size() == 1 && ids[0] == id;
  }
  return false;
}

const Bpe::Slot* Bpe::Find(TokenId left, TokenId right) const {
  const uint64_t key = KeyOf(left, right);
  const uint64_t hash = HashOf(key);
  const uint64_t bit = hash >> present_shift_;
  if (!(present_[bit / 64] >> bit % 64 & 1)) return nullptr;
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask; slots_[at].key != kNoKey; at = (at + 1) & mask) {
    if (slots_[at].key == key) return &slots_[at];
  }
  return nullptr;
}

int32_t Bpe::Rank(TokenId left, TokenId right) const {
  const Slot* slot = Find(left, right);
  return slot ? slot->rank : kNoRank;
}

void Bpe::Encode(std::string_view piece, NeighbourMemo* memo, std::vector<TokenId>& out) const {
  if (look_up_) {
    const TokenId whole = vocabulary_.Find(piece);
    if (whole >= 0 && whole_[whole]) return out.push_back(whole);
  }
  if (!trie_) return EncodeByMerging(piece, out);
  if (piece.size() < 64) return EncodeByMatching(piece, FewDeadEnds(), memo, out);
  EncodeByMatching(piece, ManyDeadEnds(piece.size()), memo, out);
}

void Bpe::EncodeByMerging(std::string_view piece, std::vector<TokenId>& out) const {
  piece.size() <= kShort ? EncodeShort(piece, out) : EncodeLong(piece, out);
}

// Undoes merges on both sides of the border, the latest first; a pair across it that merges before
// what was undone would have been joined instead. Of two equal merges the left one comes first.
bool Bpe::StayApart(TokenId left, TokenId right, TokenId limit) const {
  while (true) {
    if (const Slot* across = Find(left, right); across && across->result < limit) return false;
    const TokenId inner_left = right_half_[left], inner_right = left_half_[right];
    const bool byte_left = inner_left == left, byte_right = inner_right == right;
    if (byte_left && byte_right) return true;
    if (byte_right || (!byte_left && left > right)) {
      limit = left;
      left = inner_left;
    } else {
      limit = right + 1;
      right = inner_right;
    }
  }
}

bool Bpe::StayApart(TokenId left, TokenId right, NeighbourMemo* memo) const {
  if (!memo) return StayApart(left, right, kNoRank);
  constexpr uint64_t kApart = uint64_t{1} << 63;
  const uint64_t key = KeyOf(left, right) + 1;  // an empty slot is no pair
  uint64_t& slot = memo->slots_[HashOf(key) % NeighbourMemo::kSlots];
  if ((slot & ~kApart) == key) return slot & kApart;
  const bool apart = StayApart(left, right, kNoRank);
  slot = key | (apart ? kApart : 0);
  return apart;
}

// Takes the longest token that stays apart from the one before and does not end where no way on was
// found; else gives up the one before and tries a shorter one in its place.
template <typename DeadEnds>
void Bpe::EncodeByMatching(std::string_view piece, DeadEnds dead, NeighbourMemo* memo,
                           std::vector<TokenId>& out) const {
  const size_t before = out.size();
  const auto shorter = [this](TokenTrie::Match match) -> TokenTrie::Match {
    const TokenId token = trie_->Prefix(match.token);
    return {token, static_cast<uint32_t>(vocabulary_.Bytes(token).size())};
  };
  size_t pos = 0;
  TokenTrie::Match match = trie_->Longest(piece);
  while (true) {
    const TokenId last = out.size() > before ? out.back() : -1;
    while (match.token >= 0 &&
           (dead.Has(pos + match.bytes) || (last >= 0 && !StayApart(last, match.token, memo)))) {
      match = shorter(match);
    }
    if (match.token >= 0) {
      out.push_back(match.token);
      pos += match.bytes;
      if (pos == piece.size()) return;
      match = trie_->Longest(piece.substr(pos));
    } else {
      CHECK(last >= 0, pos);  // every text has an encoding
      dead.Add(pos);
      out.pop_back();
      match = {last, static_cast<uint32_t>(vocabulary_.Bytes(last).size())};
      pos -= match.bytes;
      match = shorter(match);
    }
  }
}

void Bpe::EncodeShort(std::string_view piece, std::vector<TokenId>& out) const {
  TokenId ids[kShort];
  int32_t ranks[kShort];  // of the pair that begins here
  size_t count = piece.size();
  for (size_t i = 0; i < count; ++i) ids[i] = byte_ids_[static_cast<unsigned char>(piece[i])];
  for (size_t i = 0; i + 1 < count; ++i) ranks[i] = Rank(ids[i], ids[i + 1]);
  while (count > 1) {
    const size_t at = std::min_element(ranks, ranks + count - 1) - ranks;
    if (ranks[at] == kNoRank) break;
    ids[at] = Find(ids[at], ids[at + 1])->result;
    std::copy(ids + at + 2, ids + count, ids + at + 1);
    std::copy(ranks + at + 1, ranks + count - 1, ranks + at);
    --count;
    if (at > 0) ranks[at - 1] = Rank(ids[at - 1], ids[at]);
    if (at + 1 < count) ranks[at] = Rank(ids[at], ids[at + 1]);
  }
  out.insert(out.end(), ids, ids + count);
}

// A linked list of tokens and a heap of (rank, place). Entries of the heap are not taken out when
// their pair goes: an entry counts only while its rank is the one noted at its place.
void Bpe::EncodeLong(std::string_view piece, std::vector<TokenId>& out) const {
  struct Node {
    TokenId id;
    int32_t rank;  // of the pair that begins here
    uint32_t previous, next;
  };
  constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  CHECK(piece.size() < kNone, piece.size());
  const auto count = static_cast<uint32_t>(piece.size());
  std::vector<Node> nodes(count);
  for (uint32_t i = 0; i < count; ++i) {
    nodes[i] = {byte_ids_[static_cast<unsigned char>(piece[i])], kNoRank, i == 0 ? kNone : i - 1,
                i + 1 == count ? kNone : i + 1};
  }
  std::vector<uint64_t> heap;
  heap.reserve(count);
  for (uint32_t i = 0; i + 1 < count; ++i) {
    nodes[i].rank = Rank(nodes[i].id, nodes[i + 1].id);
    if (nodes[i].rank != kNoRank) heap.push_back(static_cast<uint64_t>(nodes[i].rank) << 32 | i);
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto rank_again = [&](uint32_t at) {
    Node& node = nodes[at];
    node.rank = node.next == kNone ? kNoRank : Rank(node.id, nodes[node.next].id);
    if (node.rank == kNoRank) return;
    heap.push_back(static_cast<uint64_t>(node.rank) << 32 | at);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    const auto rank = static_cast<int32_t>(heap.front() >> 32);
    const auto at = static_cast<uint32_t>(heap.front());
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
    Node& node = nodes[at];
    if (node.rank != rank) continue;
    Node& right = nodes[node.next];
    node.id = Find(node.id, right.id)->result;
    node.next = right.next;
    right.rank = kNoRank;
    if (node.next != kNone) nodes[node.next].previous = at;
    rank_again(at);
    if (node.previous != kNone) rank_again(node.previous);
  }
  for (uint32_t at = 0; at != kNone; at = nodes[at].next) out.push_back(nodes[at].id);
}

}  // namespace levin
