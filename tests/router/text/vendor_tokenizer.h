// MiniMax-M1's own tokenizer, loaded once; tests that need it say loudly what they skip without.
#pragma once

#include <gtest/gtest.h>

#include "router/text/tokenizer.h"
#include "tests/support/golden.h"

namespace levin::testing {

// nullptr when this machine has no copy.
inline const Tokenizer* VendorTokenizer() {
  static const auto* const tokenizer = []() -> const Tokenizer* {
    const auto path = VendorFile("tokenizer/m1/tokenizer.json");
    if (path.empty()) return nullptr;
    Result<Tokenizer> loaded = Tokenizer::Load(path.parent_path());
    if (!loaded) ADD_FAILURE() << loaded.error().message();
    return loaded ? new Tokenizer(*std::move(loaded)) : nullptr;
  }();
  return tokenizer;
}

#define NEED_VENDOR_TOKENIZER(cases)                                                          \
  const Tokenizer* const vendor = ::levin::testing::VendorTokenizer();                        \
  if (!vendor) {                                                                              \
    GTEST_SKIP() << "SKIPPED " << (cases) << " golden cases: tokenizer/m1/tokenizer.json of " \
                 << "MiniMax-M1 is neither in LEVIN_GOLDEN_DIR nor beside the checkout";      \
  }

}  // namespace levin::testing
