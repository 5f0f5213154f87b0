#include "worker/sample/filter.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "worker/sample/logit_rules.h"

namespace levin {
namespace {

constexpr float kTemperatureMin = 0.01f;
constexpr size_t kSortedFirst = 256;

float Best(const std::vector<Candidate>& candidates) {
  float best = candidates.front().scaled;
  for (const Candidate& candidate : candidates) best = std::max(best, candidate.scaled);
  return best;
}

bool Better(const Candidate& a, const Candidate& b) {
  return a.scaled != b.scaled ? a.scaled > b.scaled : a.token < b.token;
}

}  // namespace

float EffectiveTemperature(float temperature) { return std::max(temperature, kTemperatureMin); }

std::vector<Candidate> Scale(std::span<const float> row, float temperature) {
  const float effective = EffectiveTemperature(temperature);
  std::vector<Candidate> candidates;
  candidates.reserve(row.size());
  for (size_t id = 0; id < row.size(); ++id)
    if (row[id] != kMasked) candidates.push_back({static_cast<TokenId>(id), row[id] / effective});
  return candidates;
}

void KeepMinP(float min_p, std::vector<Candidate>& candidates) {
  if (min_p <= 0) return;
  const double best = Best(candidates);
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return std::exp(candidate.scaled - best) < min_p;
  });
}

void KeepTopK(int32_t k, std::vector<Candidate>& candidates) {
  if (k <= 0 || static_cast<size_t>(k) >= candidates.size()) return;
  std::vector<float> values(candidates.size());
  std::transform(candidates.begin(), candidates.end(), values.begin(),
                 [](const Candidate& candidate) { return candidate.scaled; });
  std::nth_element(values.begin(), values.begin() + (k - 1), values.end(), std::greater<>());
  const float threshold = values[static_cast<size_t>(k - 1)];
  std::erase_if(candidates,
                [&](const Candidate& candidate) { return candidate.scaled < threshold; });
}

void KeepTopP(float p, std::vector<Candidate>& candidates) {
  if (p >= 1) return;
  const double best = Best(candidates);
  const auto mass_of = [&](const Candidate& candidate) {
    return std::exp(candidate.scaled - best);
  };
  double total = 0;
  for (const Candidate& candidate : candidates) total += mass_of(candidate);

  // A few candidates hold nearly all mass, so only as many are sorted as it takes.
  std::vector<Candidate> sorted = candidates;
  double mass = 0;
  size_t kept = 0;
  for (size_t count = kSortedFirst; mass < p * total && kept < sorted.size(); count *= 4) {
    const auto end = sorted.begin() + static_cast<ptrdiff_t>(std::min(count, sorted.size()));
    const auto begin = sorted.begin() + static_cast<ptrdiff_t>(kept);
    if (end != sorted.end()) std::nth_element(begin, end, sorted.end(), Better);
    std::sort(begin, end, Better);
    for (auto it = begin; it != end && mass < p * total; ++it, ++kept) mass += mass_of(*it);
  }
  const Candidate last = sorted[std::max<size_t>(kept, 1) - 1];
  std::erase_if(candidates, [&](const Candidate& candidate) { return Better(last, candidate); });
}

}  // namespace levin
