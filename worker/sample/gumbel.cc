#include "worker/sample/gumbel.h"

#include <cmath>
#include <limits>

#include "worker/sample/philox.h"

namespace levin {

double GumbelNoise(uint64_t seed, int64_t index, TokenId token) {
  // One Philox call serves four neighbouring ids; the lane is the id's low bits.
  const auto id = static_cast<uint32_t>(token);
  const auto position = static_cast<uint64_t>(index);
  const uint32_t bits = Philox4x32(
      {id / 4, static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), 0},
      seed)[id % 4];
  const double uniform = (static_cast<double>(bits) + 0.5) * 0x1p-32;
  return -std::log(-std::log(uniform));
}

TokenId DrawGumbel(std::span<const Candidate> candidates, uint64_t seed, int64_t index) {
  TokenId drawn = candidates.front().token;
  double best = -std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : candidates) {
    if (candidate.scaled + kGumbelMax < best)
      continue;  // no noise can lift it: most of a vocabulary
    const double value = candidate.scaled + GumbelNoise(seed, index, candidate.token);
    if (value > best) {
      best = value;
      drawn = candidate.token;
    }
  }
  return drawn;
}

}  // namespace levin
