#include "worker/sample/logit_rules.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace levin {
namespace {

float& At(std::span<float> row, TokenId id) { return row[static_cast<size_t>(id)]; }

void KeepAllowed(const std::vector<TokenId>& allowed, std::span<float> row) {
  if (allowed.empty()) return;
  std::vector<float> kept(allowed.size());
  for (size_t i = 0; i < allowed.size(); ++i) kept[i] = At(row, allowed[i]);
  std::fill(row.begin(), row.end(), kMasked);
  for (size_t i = 0; i < allowed.size(); ++i) At(row, allowed[i]) = kept[i];
}

// The last id of a bad sequence is ruled out where all ids before it end the output.
void MaskBadSequences(const SamplingParams& params, const std::vector<TokenId>& output,
                      std::span<float> row) {
  for (const std::vector<TokenId>& bad : params.bad_sequences) {
    const size_t prefix = bad.size() - 1;
    if (prefix > output.size()) continue;
    if (std::equal(bad.begin(), bad.end() - 1, output.end() - static_cast<ptrdiff_t>(prefix)))
      At(row, bad.back()) = kMasked;
  }
}

void Repel(const SamplingParams& params, const TokenHistory& history, std::span<float> row) {
  const float r = params.repetition_penalty;
  if (r == 1.0f) return;
  const auto repel = [&](TokenId id) {
    float& logit = At(row, id);
    logit = logit > 0 ? logit / r : logit * r;
  };
  for (TokenId id : history.prompt) repel(id);
  for (const auto& [id, count] : history.output_counts)
    if (!std::binary_search(history.prompt.begin(), history.prompt.end(), id)) repel(id);
}

void SubtractCounts(const SamplingParams& params, const TokenHistory& history,
                    std::span<float> row) {
  if (params.frequency_penalty == 0 && params.presence_penalty == 0) return;
  for (const auto& [id, count] : history.output_counts)
    At(row, id) -= params.frequency_penalty * static_cast<float>(count) + params.presence_penalty;
}

}  // namespace

void ApplyLogitRules(const SamplingParams& params, const TokenHistory& history, int64_t index,
                     std::span<float> row) {
  KeepAllowed(params.allowed_ids, row);
  MaskBadSequences(params, history.output, row);
  if (index < params.min_tokens)
    for (TokenId id : params.stop_ids) At(row, id) = kMasked;
  for (const auto& [id, bias] : params.logit_bias) At(row, id) += bias;
  Repel(params, history, row);
  SubtractCounts(params, history, row);
}

}  // namespace levin
