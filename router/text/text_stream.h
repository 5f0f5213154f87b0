// Ids of one choice -> text that may be shown: whole characters only, and nothing that may still
// become a stop string (text.md 1, api.md 10.4). Any split of the same ids gives the same text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/types.h"
#include "router/text/tokenizer.h"
#include "router/text/utf8.h"

namespace levin {

struct TextStreamOptions {
  std::vector<std::string> stop;    // none empty; valid UTF-8
  bool skip_special_tokens = true;  // their spelling is not shown
  bool include_stop = false;        // the matched stop string is shown
};

// A special token beside the text, shown or not, so that a parser can see it.
struct SpecialEvent {
  TokenId id = 0;
  size_t at = 0;  // byte of the text that it came with; what stood before it is text[0, at)
};

// One thread. The tokenizer must outlive it.
class TextStream final {
 public:
  TextStream(const Tokenizer& tokenizer, TextStreamOptions options);

  struct Piece {
    std::string text;
    bool stopped = false;     // a stop string was found; text ends before it (or with it)
    std::string stop_string;  // which
    std::vector<SpecialEvent> specials;
  };
  // After `stopped` nothing more comes out. A stop string counts where it ends, in the first token
  // that ends one: the earliest end, of several the longest. With check_stop false (min_tokens not
  // reached) one that ends in this token is passed over.
  Piece Push(TokenId token, bool check_stop = true);

  // A token that counts but shows no text: the end token, a stop id.
  Piece PushHidden(TokenId token);

  // At the end of the reply: the text that was held for the sake of stop strings. The bytes of an
  // unfinished character are dropped.
  std::string Flush();
  Piece FlushPiece();  // the same with the special tokens that were held with it

  std::string_view unfinished() const { return characters_.held(); }

 private:
  // How much of one stop string the text ends with, kept up byte by byte (Knuth-Morris-Pratt).
  struct Matcher {
    std::string stop;
    std::vector<uint32_t> fallback;  // [stop.size()] longest border of stop[0, i]
    uint32_t matched = 0;
  };

  void Scan(std::string_view fresh, bool check_stop, Piece& piece);
  size_t HeldForStop() const;
  void Release(size_t bytes, Piece& piece);

  const Tokenizer& tokenizer_;
  const TextStreamOptions options_;
  std::vector<Matcher> matchers_;
  Utf8Assembler characters_;
  std::string held_;                    // characters not shown yet
  std::vector<SpecialEvent> specials_;  // not given out yet; `at` counts from the front of held_
  bool stopped_ = false;
};

}  // namespace levin
