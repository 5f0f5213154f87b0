#include "worker/sample/logprobs.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "worker/sample/logit_rules.h"

namespace levin {
namespace {

double LogSumExp(std::span<const float> row) {
  const float best = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (float logit : row) sum += std::exp(logit - best);
  return best + std::log(sum);
}

std::vector<TokenId> Best(std::span<const float> row, int32_t k) {
  std::vector<TokenId> ids;
  for (size_t id = 0; id < row.size(); ++id)
    if (row[id] != kMasked) ids.push_back(static_cast<TokenId>(id));
  const auto better = [&](TokenId a, TokenId b) {
    const float x = row[static_cast<size_t>(a)], y = row[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  const size_t count = std::min(ids.size(), static_cast<size_t>(k));
  std::partial_sort(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(count), ids.end(), better);
  ids.resize(count);
  return ids;
}

}  // namespace

void FillLogprobs(std::span<const float> row, int32_t k, SampledToken& token) {
  const double total = LogSumExp(row);
  const auto logprob = [&](TokenId id) {
    return static_cast<float>(row[static_cast<size_t>(id)] - total);
  };
  const auto chosen = static_cast<size_t>(token.token);
  token.logprob = logprob(token.token);
  token.rank = 1;
  for (size_t id = 0; id < row.size(); ++id)
    if (row[id] > row[chosen] || (row[id] == row[chosen] && id < chosen)) ++token.rank;
  for (TokenId id : Best(row, k)) token.top.push_back({id, logprob(id)});
}

}  // namespace levin
