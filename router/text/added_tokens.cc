#include "router/text/added_tokens.h"

#include <algorithm>

#include "router/text/char_table.h"
#include "router/text/utf8.h"

namespace levin {
namespace {

// The start of the code point that ends at `end` > 0.
size_t Previous(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return begin;
}

// What single_word calls a word character. ASCII and everything above it that is not whitespace
// or general punctuation: no known tokenizer of the family sets the flag.
bool IsWordCharacter(char32_t code) {
  if (code < 0x80) {
    const char32_t lower = code | 0x20;
    return code == '_' || (code >= '0' && code <= '9') || (lower >= 'a' && lower <= 'z');
  }
  return !IsWhiteSpace(code) && !(code >= 0x2010 && code <= 0x206F) &&
         !(code >= 0x3000 && code <= 0x303F);
}

bool TouchesWord(std::string_view text, size_t begin, size_t end) {
  if (begin > 0 && IsWordCharacter(DecodeUtf8(text.substr(Previous(text, begin))).value))
    return true;
  return end < text.size() && IsWordCharacter(DecodeUtf8(text.substr(end)).value);
}

size_t StripLeft(std::string_view text, size_t begin, size_t floor) {
  while (begin > floor) {
    const size_t previous = Previous(text, begin);
    if (previous < floor || !IsWhiteSpace(DecodeUtf8(text.substr(previous)).value)) break;
    begin = previous;
  }
  return begin;
}

size_t StripRight(std::string_view text, size_t end) {
  while (end < text.size()) {
    const CodePoint code = DecodeUtf8(text.substr(end));
    if (!IsWhiteSpace(code.value)) break;
    end += code.bytes;
  }
  return end;
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::stable_sort(tokens_.begin(), tokens_.end(), [](const AddedToken& a, const AddedToken& b) {
    return a.content.size() > b.content.size();
  });
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const char first = tokens_[i].content[0];
    if (firsts_.find(first) == std::string::npos) firsts_ += first;
    by_first_[static_cast<unsigned char>(tokens_[i].content[0])].push_back(
        static_cast<uint16_t>(i));
  }
}

// Nearly always they all begin with '<', and a search for one byte is fast.
size_t AddedTokenMatcher::NextCandidate(std::string_view text, size_t pos) const {
  const size_t next =
      firsts_.size() == 1 ? text.find(firsts_[0], pos) : text.find_first_of(firsts_, pos);
  return std::min(next, text.size());
}

const AddedToken* AddedTokenMatcher::LongestAt(std::string_view text, size_t pos) const {
  for (const uint16_t i : by_first_[static_cast<unsigned char>(text[pos])]) {
    if (text.compare(pos, tokens_[i].content.size(), tokens_[i].content) == 0) return &tokens_[i];
  }
  return nullptr;
}

std::vector<AddedMatch> AddedTokenMatcher::Find(
    std::string_view text,
    const std::function<bool(const AddedToken&, size_t, size_t)>& keep) const {
  std::vector<AddedMatch> matches;
  if (tokens_.empty()) return matches;
  size_t done = 0;  // where the last match ended, whitespace included
  for (size_t pos = NextCandidate(text, 0); pos < text.size(); pos = NextCandidate(text, pos)) {
    const AddedToken* token = LongestAt(text, pos);
    if (!token) {
      ++pos;
      continue;
    }
    size_t begin = pos;
    size_t end = pos + token->content.size();
    pos = end;
    if (!keep(*token, begin, end) || (token->single_word && TouchesWord(text, begin, end)))
      continue;
    if (token->lstrip) begin = StripLeft(text, begin, done);
    if (token->rstrip) end = StripRight(text, end);
    matches.push_back({token->id, begin, end});
    pos = done = end;
  }
  return matches;
}

}  // namespace levin
