// The tokens of a step, grouped by expert.
#pragma once

#include <cstdint>
#include <span>

namespace levin {

// Expert e works on entries [first[e], first[e + 1]). An entry names a token and which of the
// token's k choices it is; entries of one expert are in order of their tokens.
struct ExpertOrder {
  std::span<int32_t> first;  // [E + 1]
  std::span<int32_t> token;  // [T * k]
  std::span<int32_t> place;  // [T * k]: token * k + choice
};

// `chosen` [T, k]; scratch holds 2 * T * k + E + 1 numbers.
ExpertOrder OrderByExpert(std::span<const int32_t> chosen, int64_t k, int64_t experts,
                          std::span<int32_t> scratch);

}  // namespace levin
