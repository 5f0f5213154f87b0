#include "router/text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "router/text/added_tokens.h"
#include "router/text/bpe.h"
#include "router/text/char_table.h"
#include "router/text/nfc.h"
#include "router/text/pre_tokenizer.h"
#include "router/text/tokenizer_file.h"
#include "router/text/vocabulary.h"

namespace levin {
namespace {

std::vector<AddedToken> Select(const std::vector<AddedToken>& added, bool normalized) {
  std::vector<AddedToken> selected;
  for (const AddedToken& token : added) {
    if (token.normalized == normalized) selected.push_back(token);
  }
  return selected;
}

// With the spelling that is looked for after NFC.
std::vector<AddedToken> Normalised(std::vector<AddedToken> added, bool nfc,
                                   const CharTable& chars) {
  std::string storage;
  for (AddedToken& token : added) {
    if (nfc) token.content = std::string(ToNfc(token.content, chars, storage));
  }
  return added;
}

// An added token may repeat an entry of the vocabulary.
std::vector<Vocabulary::Entry> AllEntries(const TokenizerFile& file) {
  std::vector<Vocabulary::Entry> all = file.vocabulary;
  std::vector<bool> taken;
  for (const auto& entry : all) {
    if (taken.size() <= static_cast<size_t>(entry.id)) taken.resize(entry.id + 1);
    taken[entry.id] = true;
  }
  for (const AddedToken& token : file.added) {
    if (static_cast<size_t>(token.id) < taken.size() && taken[token.id]) continue;
    all.push_back({token.id, token.content});
  }
  return all;
}

// NFC makes a text shorter by a factor of three at most (Hangul: three letters of three bytes
// become one syllable of three; the Kelvin sign becomes K).
constexpr size_t kNfcShrinksBy = 3;

size_t LongestToken(const Vocabulary& all, const TokenizerFile& file) {
  size_t longest = 1;
  for (TokenId id = 0; id < all.size(); ++id) longest = std::max(longest, all.Bytes(id).size());
  for (const AddedToken& token : file.added) {
    if (token.lstrip || token.rstrip) return SIZE_MAX;
    longest = std::max(longest, token.content.size());
  }
  return file.nfc ? kNfcShrinksBy * longest : longest;
}

// The bytes of the joined segments that are scaffold, in order and not touching each other.
class ScaffoldRanges final {
 public:
  void Add(size_t begin, size_t end) {
    if (begin == end) return;
    if (!ranges_.empty() && ranges_.back().second == begin) {
      ranges_.back().second = end;
    } else {
      ranges_.emplace_back(begin, end);
    }
  }
  bool Contain(size_t begin, size_t end) const {
    auto after = std::upper_bound(ranges_.begin(), ranges_.end(), std::pair{begin, SIZE_MAX});
    return after != ranges_.begin() && std::prev(after)->second >= end;
  }

 private:
  std::vector<std::pair<size_t, size_t>> ranges_;
};

}  // namespace

struct Tokenizer::Rules {
  Rules(const TokenizerFile& file, TokenizerConfig read)
      : model(file.vocabulary),
        all(AllEntries(file)),
        bpe(model, file.merges, file.ignore_merges),
        raw(Select(file.added, false)),
        after_nfc(Normalised(Select(file.added, true), file.nfc, chars)),
        nfc(file.nfc),
        longest(LongestToken(all, file)),
        added(file.added),
        config(std::move(read)) {
    special.resize(all.size());
    for (const AddedToken& token : added) special[token.id] = token.special;
  }

  CharTable chars;
  Vocabulary model;  // what merging makes
  Vocabulary all;    // with the added tokens
  Bpe bpe;
  AddedTokenMatcher raw, after_nfc;
  bool nfc;
  size_t longest;
  std::vector<AddedToken> added;
  std::vector<bool> special;  // [all.size()]
  TokenizerConfig config;

  void EncodeWords(std::string_view text, std::vector<TokenId>& out) const {
    constexpr size_t kMemoPays = 16384;  // bytes
    std::optional<NeighbourMemo> memo;
    if (text.size() >= kMemoPays) memo.emplace();
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = PreTokenEnd(text, begin, chars);
      bpe.Encode(text.substr(begin, end - begin), memo ? &*memo : nullptr, out);
      begin = end;
    }
  }

  // Text between the added tokens that are found in raw text.
  void EncodeRun(std::string_view text, bool specials, std::vector<TokenId>& out) const {
    std::string storage;
    if (nfc) text = ToNfc(text, chars, storage);
    if (after_nfc.empty()) return EncodeWords(text, out);
    size_t done = 0;
    for (const AddedMatch& match :
         after_nfc.Find(text, [specials](const AddedToken&token, size_t, size_t) {
           return specials || !token.special;
         })) {
      EncodeWords(text.substr(done, match.begin - done), out);
      out.push_back(match.id);
      done = match.end;
    }
    EncodeWords(text.substr(done), out);
  }

  template <typename Keep>
  std::vector<TokenId> Encode(std::string_view text, bool specials_after_nfc, Keep keep) const {
    std::vector<TokenId> out;
    out.reserve(text.size() / 3 + 1);
    size_t done = 0;
    for (const AddedMatch& match : raw.Find(text, keep)) {
      EncodeRun(text.substr(done, match.begin - done), specials_after_nfc, out);
      out.push_back(match.id);
      done = match.end;
    }
    EncodeRun(text.substr(done), specials_after_nfc, out);
    return out;
  }
};

Result<Tokenizer> Tokenizer::Load(const std::filesystem::path& model_dir) {
  ASSIGN_OR_RETURN(const TokenizerFile file, ReadTokenizerFile(model_dir / "tokenizer.json"));
  ASSIGN_OR_RETURN(TokenizerConfig config, ReadTokenizerConfig(model_dir));
  return Tokenizer(std::make_shared<const Rules>(file, std::move(config)));
}

std::vector<TokenId> Tokenizer::Encode(std::string_view text, SpecialTokens specials) const {
  const bool wanted = specials == SpecialTokens::kRecognised;
  return rules_->Encode(text, wanted, [wanted](const AddedToken& token, size_t, size_t) {
    return wanted || !token.special;
  });
}

std::vector<TokenId> Tokenizer::EncodeSegments(std::span<const Segment> segments) const {
  std::string text;
  ScaffoldRanges scaffold;
  for (const Segment& segment : segments) {
    if (segment.scaffold) scaffold.Add(text.size(), text.size() + segment.text.size());
    text += segment.text;
  }
  // What is found only after NFC has lost its place in the segments: no structure from it.
  return rules_->Encode(text, false,
                        [&scaffold](const AddedToken& token, size_t begin, size_t end) {
                          return !token.special || scaffold.Contain(begin, end);
                        });
}

std::string_view Tokenizer::Bytes(TokenId id) const { return rules_->all.Bytes(id); }
bool Tokenizer::IsDefined(TokenId id) const { return !Bytes(id).empty(); }
bool Tokenizer::IsSpecial(TokenId id) const {
  return id >= 0 && id < vocab_size() && rules_->special[id];
}
int32_t Tokenizer::vocab_size() const { return rules_->all.size(); }
size_t Tokenizer::longest_token_bytes() const { return rules_->longest; }

std::optional<TokenId> Tokenizer::FindAdded(std::string_view content) const {
  for (const AddedToken& token : rules_->added) {
    if (token.content == content) return token.id;
  }
  return std::nullopt;
}

std::optional<TokenId> Tokenizer::eos_token() const {
  const std::string& name = rules_->config.eos_token;
  if (name.empty()) return std::nullopt;
  if (const auto added = FindAdded(name)) return added;
  const TokenId id = rules_->all.Find(name);
  return id >= 0 ? std::optional(id) : std::nullopt;
}

const std::string& Tokenizer::config_json() const { return rules_->config.json; }
const std::string& Tokenizer::chat_template() const { return rules_->config.chat_template; }

}  // namespace levin
