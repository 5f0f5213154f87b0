#include "router/text/pre_tokenizer.h"

#include "router/text/utf8.h"

namespace levin {

const std::string_view kSplitPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

namespace {

constexpr uint8_t kHead = kUpper | kCaseless | kMark;  // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
constexpr uint8_t kTail = kLower | kCaseless | kMark;  // [\p{Ll}\p{Lm}\p{Lo}\p{M}]

struct Char {
  char32_t code = 0;
  uint8_t bits = 0;
  size_t end = 0;  // where the next one begins
};

class Splitter final {
 public:
  Splitter(std::string_view text, const CharTable& table) : text_(text), table_(table) {}

  size_t End(size_t begin) const {
    const Char first = At(begin);
    if (const size_t end = Word(begin, first)) return end;
    if (first.bits & kNumber) return Numbers(first.end);
    if (const size_t end = Symbols(begin, first)) return end;
    return Blanks(first.end, begin, first);
  }

 private:
  Char At(size_t pos) const {
    const CodePoint code = DecodeUtf8(text_.substr(pos));
    return {code.value, table_.Bits(code.value), pos + code.bytes};
  }
  bool done(size_t pos) const { return pos >= text_.size(); }

  // Alternatives 1 and 2; 0 when neither matches. A mark may be the optional first character, but
  // then it is a head and a tail as well, and alternative 1 finds the same end without it.
  size_t Word(size_t begin, const Char& first) const {
    if (first.bits & (kLetter | kMark)) return Letters(begin);
    if (first.bits & (kNewline | kNumber)) return 0;
    return Letters(first.end);
  }

  // Heads are taken greedily. If a lower-case letter follows, tails follow too; else the pattern
  // gives back heads until one is a tail as well. No such one: alternative 2, all the heads.
  size_t Letters(size_t begin) const {
    size_t pos = begin, after_last_tail = 0;
    while (!done(pos)) {
      const Char c = At(pos);
      if (!(c.bits & kHead)) {
        if (c.bits & kLower) return Contraction(Tails(c.end));
        break;
      }
      pos = c.end;
      if (c.bits & kTail) after_last_tail = pos;
    }
    if (pos == begin) return 0;
    return Contraction(after_last_tail ? after_last_tail : pos);
  }

  size_t Tails(size_t pos) const {
    while (!done(pos)) {
      const Char c = At(pos);
      if (!(c.bits & kTail)) break;
      pos = c.end;
    }
    return pos;
  }

  // 's 't 're 've 'm 'll 'd in any case; U+017F folds to s.
  size_t Contraction(size_t pos) const {
    if (done(pos) || text_[pos] != '\'' || done(pos + 1)) return pos;
    const Char one = At(pos + 1);
    switch (one.code | 0x20) {
      case 's':
      case 't':
      case 'm':
      case 'd':
        return one.code < 0x80 ? one.end : pos;
      case 0x17F:
        return one.code == 0x17F ? one.end : pos;
      case 'r':
      case 'v':
        return one.code < 0x80 && IsAscii(one.end, 'e') ? one.end + 1 : pos;
      case 'l':
        return one.code < 0x80 && IsAscii(one.end, 'l') ? one.end + 1 : pos;
      default:
        return pos;
    }
  }
  bool IsAscii(size_t pos, char lower) const { return !done(pos) && (text_[pos] | 0x20) == lower; }

  // Alternative 3: one to three numbers, the first of which ends at `pos`.
  size_t Numbers(size_t pos) const {
    for (int count = 1; count < 3 && !done(pos); ++count) {
      const Char c = At(pos);
      if (!(c.bits & kNumber)) break;
      pos = c.end;
    }
    return pos;
  }

  // Alternative 4; 0 when it does not match.
  size_t Symbols(size_t begin, const Char& first) const {
    constexpr uint8_t kNoSymbol = kSpace | kLetter | kNumber;
    const size_t start = first.code == ' ' ? first.end : begin;
    size_t pos = start;
    while (!done(pos)) {
      const Char c = At(pos);
      if (c.bits & kNoSymbol) break;
      pos = c.end;
    }
    if (pos == start) return 0;
    while (!done(pos) && (text_[pos] == '\r' || text_[pos] == '\n' || text_[pos] == '/')) ++pos;
    return pos;
  }

  // Alternatives 5 to 7: whitespace up to its last CR or LF; else all of it at the end of the text;
  // else all but the last; else the only one.
  size_t Blanks(size_t pos, size_t begin, const Char& first) const {
    size_t after_newline = first.bits & kNewline ? pos : 0;
    size_t last = begin;
    while (!done(pos)) {
      const Char c = At(pos);
      if (!(c.bits & kSpace)) break;
      last = pos;
      pos = c.end;
      if (c.bits & kNewline) after_newline = pos;
    }
    if (after_newline) return after_newline;
    return done(pos) || last == begin ? pos : last;
  }

  std::string_view text_;
  const CharTable& table_;
};

}  // namespace

size_t PreTokenEnd(std::string_view text, size_t begin, const CharTable& table) {
  return Splitter(text, table).End(begin);
}

}  // namespace levin
