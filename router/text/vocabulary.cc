#include "router/text/vocabulary.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>

#include "common/base/check.h"

namespace levin {
namespace {

uint64_t HashOf(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace

Vocabulary::Vocabulary(const std::vector<Entry>& entries) {
  std::vector<const Entry*> by_id;
  by_id.reserve(entries.size());
  for (const Entry& entry : entries) by_id.push_back(&entry);
  std::sort(by_id.begin(), by_id.end(), [](auto* a, auto* b) { return a->id < b->id; });

  slots_.resize(std::bit_ceil(2 * entries.size() + 2));
  const size_t mask = slots_.size() - 1;
  for (const Entry* entry : by_id) {
    CHECK(entry->id + size_t{1} > begin_.size() && !entry->bytes.empty(), entry->id);
    begin_.resize(entry->id + size_t{1}, static_cast<uint32_t>(arena_.size()));
    arena_ += entry->bytes;
    const uint64_t hash = HashOf(entry->bytes);
    size_t at = hash & mask;
    while (slots_[at].id >= 0) at = (at + 1) & mask;
    slots_[at] = {static_cast<uint32_t>(hash >> 32), entry->id};
  }
  begin_.push_back(static_cast<uint32_t>(arena_.size()));
}

TokenId Vocabulary::Find(std::string_view bytes) const {
  const uint64_t hash = HashOf(bytes);
  const auto tag = static_cast<uint32_t>(hash >> 32);
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask; slots_[at].id >= 0; at = (at + 1) & mask) {
    if (slots_[at].tag == tag && Bytes(slots_[at].id) == bytes) return slots_[at].id;
  }
  return -1;
}

}  // namespace levin
