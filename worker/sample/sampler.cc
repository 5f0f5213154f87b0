#include "worker/sample/sampler.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "worker/sample/filter.h"
#include "worker/sample/gumbel.h"
#include "worker/sample/logit_rules.h"
#include "worker/sample/logprobs.h"

namespace levin {
namespace {

bool Poisoned(std::span<const float> row) {
  return std::any_of(row.begin(), row.end(),
                     [](float logit) { return std::isnan(logit) || logit == INFINITY; });
}

bool AllMasked(std::span<const float> row) {
  return std::all_of(row.begin(), row.end(), [](float logit) { return logit == kMasked; });
}

TokenId Choose(std::span<const float> row, const SamplingParams& params, int64_t index) {
  if (params.greedy())  // of equal ones max_element gives the first: the lowest id
    return static_cast<TokenId>(std::max_element(row.begin(), row.end()) - row.begin());
  std::vector<Candidate> candidates = Scale(row, params.temperature);
  KeepMinP(params.min_p, candidates);
  KeepTopK(params.top_k, candidates);
  KeepTopP(params.top_p, candidates);
  return DrawGumbel(candidates, params.seed, index);
}

}  // namespace

Sampler::Sampler(int32_t vocab_size, const std::vector<bool>& defined)
    : row_(static_cast<size_t>(vocab_size)) {
  CHECK(defined.empty() || defined.size() == row_.size(), defined.size(), vocab_size);
  for (size_t id = 0; id < defined.size(); ++id)
    if (!defined[id]) undefined_.push_back(static_cast<TokenId>(id));
}

Draw Sampler::Sample(std::span<const float> logits, const SamplingParams& params,
                     const TokenHistory& history, int64_t index) {
  CHECK_EQ(logits.size(), row_.size());
  std::copy(logits.begin(), logits.end(), row_.begin());
  for (TokenId id : undefined_) row_[static_cast<size_t>(id)] = kMasked;

  Draw draw;
  if (Poisoned(row_)) {
    draw.numeric_fault = true;
    return draw;
  }
  const bool wants_logprobs = params.logprobs >= 0;
  const std::vector<float> raw = wants_logprobs ? row_ : std::vector<float>();
  ApplyLogitRules(params, history, index, row_);
  if (Poisoned(row_) || AllMasked(row_)) {
    draw.numeric_fault = true;
    return draw;
  }
  draw.token.token = Choose(row_, params, index);
  if (wants_logprobs) FillLogprobs(raw, params.logprobs, draw.token);
  return draw;
}

}  // namespace levin
