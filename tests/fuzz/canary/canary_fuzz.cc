// A parser with a mistake that one word of its dictionary finds: proves that a replay sees it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  levin::testing::Require(input.find("!!") == input.npos);
  return 0;
}
