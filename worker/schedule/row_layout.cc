#include "worker/schedule/row_layout.h"

#include <algorithm>

namespace levin {
namespace {

// 0: what is left of the budget holds no chunk of this prompt.
int64_t ChunkTokens(const SchedulerOptions& options, const Sequence& sequence, int64_t budget) {
  const int64_t left = sequence.prompt_tokens() - sequence.computed;
  if (options.chunk_tokens > 0) {
    const int64_t chunk = std::min<int64_t>(options.chunk_tokens, left);
    return chunk <= budget ? chunk : 0;
  }
  if (left <= budget) return left;
  const int64_t end = (sequence.computed + budget) / options.block_tokens * options.block_tokens;
  return std::max<int64_t>(0, end - sequence.computed);
}

}  // namespace

std::vector<LaidRow> LayOutRows(const SchedulerOptions& options,
                                std::span<const Sequence> running) {
  std::vector<LaidRow> rows;
  int64_t budget = options.step_tokens_max();
  for (size_t i = 0; i < running.size(); ++i) {
    if (running[i].over || !running[i].prompt_done()) continue;
    rows.push_back({.sequence = i, .tokens = 1, .prompt = false});
    --budget;
  }
  for (size_t i = 0; i < running.size() && budget > 0; ++i) {
    if (running[i].over || running[i].prompt_done()) continue;
    const int64_t tokens = ChunkTokens(options, running[i], budget);
    if (tokens == 0) continue;
    rows.push_back({.sequence = i, .tokens = static_cast<int32_t>(tokens), .prompt = true});
    budget -= tokens;
  }
  return rows;
}

}  // namespace levin
