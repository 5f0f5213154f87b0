// Broken inputs out of good ones, the same ones for the same seed on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace levin::testing {

using Bytes = std::string;

class Mutator final {
 public:
  // corpus: at least one input. words: what a parser knows, may be empty.
  Mutator(std::vector<Bytes> corpus, std::vector<Bytes> words, uint64_t seed);

  // One input of the corpus after one to eight random edits.
  Bytes Next();

 private:
  size_t Below(size_t end) { return end == 0 ? 0 : static_cast<size_t>(random_() % end); }
  const Bytes& AnyOf(const std::vector<Bytes>& list) { return list[Below(list.size())]; }
  void Edit(Bytes& input);
  void FlipOrSet(Bytes& input);
  void Cut(Bytes& input);
  void Repeat(Bytes& input);
  void Splice(Bytes& input);
  void Word(Bytes& input);
  void Number(Bytes& input);

  const std::vector<Bytes> corpus_;
  const std::vector<Bytes> words_;
  std::mt19937_64 random_;  // its numbers are fixed by the standard; distributions' are not
};

}  // namespace levin::testing
