#include "tests/fuzz/replay_mutator.h"

#include <algorithm>
#include <utility>

namespace levin::testing {
namespace {

constexpr size_t kBytesMax = size_t{64} << 10;

// Borders of every width that a parser may use.
constexpr const char* kNumbers[] = {"0",
                                    "-1",
                                    "1",
                                    "127",
                                    "255",
                                    "65536",
                                    "2147483647",
                                    "4294967296",
                                    "9223372036854775807",
                                    "9223372036854775808",
                                    "18446744073709551615",
                                    "1e308",
                                    "1e999",
                                    "-0.0",
                                    "0.5",
                                    "NaN"};
constexpr unsigned char kValues[] = {0x00, 0x01, 0x7f, 0x80, 0xc0, 0xff, '"', '\\', '{', '[', ','};

}  // namespace

Mutator::Mutator(std::vector<Bytes> corpus, std::vector<Bytes> words, uint64_t seed)
    : corpus_(std::move(corpus)), words_(std::move(words)), random_(seed) {}

Bytes Mutator::Next() {
  Bytes input = AnyOf(corpus_);
  const size_t edits = 1 + Below(8);
  for (size_t i = 0; i < edits; ++i) Edit(input);
  if (input.size() > kBytesMax) input.resize(kBytesMax);
  return input;
}

void Mutator::Edit(Bytes& input) {
  switch (Below(7)) {
    case 0:
    case 1:
      return FlipOrSet(input);
    case 2:
      return Cut(input);
    case 3:
      return Repeat(input);
    case 4:
      return Splice(input);
    case 5:
      return Word(input);
    case 6:
      return Number(input);
  }
}

void Mutator::FlipOrSet(Bytes& input) {
  if (input.empty()) return;
  char& byte = input[Below(input.size())];
  if (Below(2) == 0) {
    byte = static_cast<char>(static_cast<unsigned char>(byte) ^ (1u << Below(8)));
  } else {
    byte = static_cast<char>(kValues[Below(std::size(kValues))]);
  }
}

// The end, or a piece out of the middle.
void Mutator::Cut(Bytes& input) {
  const size_t from = Below(input.size() + 1);
  input.erase(from, Below(4) == 0 ? Bytes::npos : 1 + Below(16));
}

void Mutator::Repeat(Bytes& input) {
  const size_t from = Below(input.size() + 1);
  const Bytes piece = input.substr(from, 1 + Below(64));
  const size_t times = Below(8) == 0 ? 1 + Below(256) : 1;
  for (size_t i = 0; i < times; ++i) input.insert(from, piece);
}

// The front of this one and the back of another.
void Mutator::Splice(Bytes& input) {
  const Bytes& other = AnyOf(corpus_);
  input = input.substr(0, Below(input.size() + 1)) + other.substr(Below(other.size() + 1));
}

void Mutator::Word(Bytes& input) {
  if (words_.empty()) return FlipOrSet(input);
  const Bytes& word = AnyOf(words_);
  const size_t at = Below(input.size() + 1);
  input.replace(at, Below(2) == 0 ? 0 : word.size(), word);
}

// In place of one that is there, if there is one.
void Mutator::Number(Bytes& input) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto begin = std::find_if(input.begin() + static_cast<ptrdiff_t>(Below(input.size() + 1)),
                                  input.end(), is_digit);
  const auto end = std::find_if_not(begin, input.end(), is_digit);
  input.replace(begin, end, kNumbers[Below(std::size(kNumbers))]);
}

}  // namespace levin::testing
