// What a fuzzer promises beyond "no crash".
#pragma once

#include <cstdlib>

namespace levin::testing {

inline void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace levin::testing
