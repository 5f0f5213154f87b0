// The bytes of every token, and the token of given bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/types.h"

namespace levin {

// Immutable after construction. Ids are distinct, bytes not empty; of two ids with the same bytes
// Find gives the lower.
class Vocabulary final {
 public:
  struct Entry {
    TokenId id = 0;
    std::string bytes;
  };

  explicit Vocabulary(const std::vector<Entry>& entries);

  // One above the highest id.
  int32_t size() const { return static_cast<int32_t>(begin_.size()) - 1; }
  // "" for an id that is not defined or out of range.
  std::string_view Bytes(TokenId id) const {
    if (id < 0 || id >= size()) return {};
    return std::string_view(arena_).substr(begin_[id], begin_[id + 1] - begin_[id]);
  }
  // -1 when no token has these bytes.
  TokenId Find(std::string_view bytes) const;

 private:
  struct Slot {
    uint32_t tag = 0;  // upper half of the hash
    TokenId id = -1;
  };

  std::string arena_;
  std::vector<uint32_t> begin_;  // [size + 1] offsets into arena_
  std::vector<Slot> slots_;      // open addressing, a power of two, at most half full
};

}  // namespace levin
