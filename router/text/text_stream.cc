#include "router/text/text_stream.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace levin {
namespace {

std::vector<uint32_t> Borders(std::string_view stop) {
  std::vector<uint32_t> border(stop.size(), 0);
  for (size_t i = 1; i < stop.size(); ++i) {
    uint32_t length = border[i - 1];
    while (length > 0 && stop[i] != stop[length]) length = border[length - 1];
    border[i] = stop[i] == stop[length] ? length + 1 : 0;
  }
  return border;
}

}  // namespace

TextStream::TextStream(const Tokenizer& tokenizer, TextStreamOptions options)
    : tokenizer_(tokenizer), options_(std::move(options)) {
  for (const std::string& stop : options_.stop) {
    CHECK(!stop.empty());
    matchers_.push_back({stop, Borders(stop)});
  }
}

TextStream::Piece TextStream::Push(TokenId token, bool check_stop) {
  Piece piece;
  if (stopped_) return piece;
  const bool special = tokenizer_.IsSpecial(token);
  std::string fresh;
  if (!special || !options_.skip_special_tokens) characters_.Push(tokenizer_.Bytes(token), fresh);
  Scan(fresh, check_stop, piece);
  if (stopped_) return piece;
  if (special) specials_.push_back({token, held_.size()});
  Release(held_.size() - HeldForStop(), piece);
  return piece;
}

TextStream::Piece TextStream::PushHidden(TokenId /*token*/) { return {}; }

std::string TextStream::Flush() { return FlushPiece().text; }

TextStream::Piece TextStream::FlushPiece() {
  Piece piece;
  Release(held_.size(), piece);
  return piece;
}

void TextStream::Scan(std::string_view fresh, bool check_stop, Piece& piece) {
  if (matchers_.empty()) {
    held_ += fresh;
    return;
  }
  for (const char byte : fresh) {
    held_.push_back(byte);
    const Matcher* found = nullptr;
    for (Matcher& matcher : matchers_) {
      uint32_t& length = matcher.matched;
      if (length == matcher.stop.size()) length = matcher.fallback[length - 1];  // passed over
      while (length > 0 && byte != matcher.stop[length]) length = matcher.fallback[length - 1];
      if (byte == matcher.stop[length]) ++length;
      const bool whole = length == matcher.stop.size();
      if (whole && (!found || found->stop.size() < length)) found = &matcher;
    }
    if (!found || !check_stop) continue;
    const size_t shown = held_.size() - (options_.include_stop ? 0 : found->stop.size());
    Release(shown, piece);
    piece.stopped = stopped_ = true;
    piece.stop_string = found->stop;
    held_.clear();
    specials_.clear();
    return;
  }
}

// A stop string that was passed over whole is held only as far as it can begin another.
size_t TextStream::HeldForStop() const {
  uint32_t held = 0;
  for (const Matcher& matcher : matchers_) {
    const bool whole = matcher.matched == matcher.stop.size();
    held = std::max(held, whole ? matcher.fallback[matcher.matched - 1] : matcher.matched);
  }
  return held;
}

void TextStream::Release(size_t bytes, Piece& piece) {
  const size_t before = piece.text.size();
  piece.text.append(held_, 0, bytes);
  held_.erase(0, bytes);
  auto last = specials_.begin();
  for (; last != specials_.end() && last->at <= bytes; ++last) {
    piece.specials.push_back({last->id, before + last->at});
  }
  specials_.erase(specials_.begin(), last);
  for (SpecialEvent& event : specials_) event.at -= bytes;
}

}  // namespace levin
