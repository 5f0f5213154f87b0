#include "router/text/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

#include "common/base/check.h"

namespace levin {
namespace {

constexpr int32_t kNoRank = std::numeric_limits<int32_t>::max();
constexpr size_t kShort = 64;  // up to here a scan for the minimum beats a heap

uint64_t KeyOf(TokenId left, TokenId right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

uint64_t HashOf(uint64_t key) {  // Fibonacci hashing with the halves folded
  const uint64_t mixed = key * 0x9E3779B97F4A7C15u;
  return mixed ^ mixed >> 32;
}

}  // namespace

Bpe::Bpe(const Vocabulary& vocabulary, const std::vector<Merge>& merges, bool ignore_merges)
    : vocabulary_(vocabulary) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    byte_ids_[byte] = vocabulary.Find(std::string_view(&c, 1));
    CHECK(byte_ids_[byte] >= 0, byte);
  }
  slots_.resize(std::bit_ceil(2 * merges.size() + 2));
  const size_t mask = slots_.size() - 1;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const uint64_t key = KeyOf(merges[rank].left, merges[rank].right);
    size_t at = HashOf(key) & mask;
    while (slots_[at].key != kNoKey && slots_[at].key != key) at = (at + 1) & mask;
    if (slots_[at].key == key) continue;  // a repeated merge: the first counts
    slots_[at] = {key, static_cast<int32_t>(rank), merges[rank].result};
  }
  whole_.assign(vocabulary.size(), ignore_merges);
  if (ignore_merges) return;
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view bytes = vocabulary.Bytes(id);
    if (bytes.empty()) continue;
    ids.clear();
    Encode(bytes, ids);
    whole_[id] = ids.size() == 1 && ids[0] == id;
  }
}

const Bpe::Slot* Bpe::Find(TokenId left, TokenId right) const {
  const uint64_t key = KeyOf(left, right);
  const size_t mask = slots_.size() - 1;
  for (size_t at = HashOf(key) & mask; slots_[at].key != kNoKey; at = (at + 1) & mask) {
    if (slots_[at].key == key) return &slots_[at];
  }
  return nullptr;
}

int32_t Bpe::Rank(TokenId left, TokenId right) const {
  const Slot* slot = Find(left, right);
  return slot ? slot->rank : kNoRank;
}

void Bpe::Encode(std::string_view piece, std::vector<TokenId>& out) const {
  const TokenId whole = vocabulary_.Find(piece);
  if (whole >= 0 && whole_[whole]) return out.push_back(whole);
  piece.size() <= kShort ? EncodeShort(piece, out) : EncodeLong(piece, out);
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
