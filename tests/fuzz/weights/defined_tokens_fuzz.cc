// tokenizer.json as the ranks read it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/config/defined_tokens.h"
#include "tests/fuzz/require.h"

using levin::testing::Require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int32_t kVocab = 300;
  const auto facts = levin::ParseDefinedTokens({reinterpret_cast<const char*>(data), size}, kVocab);
  if (!facts) {
    Require(!facts.error().message().empty());
    return 0;
  }
  Require(facts->defined.size() == size_t{kVocab});
  return 0;
}
