// Tokens that are found in the text as they are spelled, before (or, `normalized`, after) NFC and
// splitting: leftmost, longest, with the flags of tokenizer.json.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/types.h"

namespace levin {

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the whitespace before it along
  bool rstrip = false;       // takes the whitespace after it along
  bool normalized = false;   // looked for after NFC
  bool special = false;      // structure; the others are ordinary vocabulary
};

struct AddedMatch {
  TokenId id = 0;
  size_t begin = 0, end = 0;  // bytes, with the whitespace that it takes along
};

// Immutable after construction.
class AddedTokenMatcher final {
 public:
  explicit AddedTokenMatcher(std::vector<AddedToken> tokens);

  bool empty() const { return tokens_.empty(); }

  // In order, not overlapping. `keep(token, begin, end)` says whether a spelling at these bytes
  // counts; one that does not is stepped over as text.
  std::vector<AddedMatch> Find(
      std::string_view text,
      const std::function<bool(const AddedToken&, size_t begin, size_t end)>& keep) const;

 private:
  size_t NextCandidate(std::string_view text, size_t pos) const;
  const AddedToken* LongestAt(std::string_view text, size_t pos) const;

  std::vector<AddedToken> tokens_;                   // longest first
  std::array<std::vector<uint16_t>, 256> by_first_;  // places in tokens_, longest first
  std::string firsts_;                               // the bytes that they begin with
};

}  // namespace levin
