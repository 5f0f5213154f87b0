// Which sequences take part in a step, with how many tokens: decode rows first, then prompt chunks
// in order of admission, within the step's budget. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/schedule/scheduler.h"
#include "worker/schedule/sequence.h"

namespace levin {

struct LaidRow {
  size_t sequence = 0;  // index in the span
  int32_t tokens = 0;
  bool prompt = false;
};

// `running`: at most options.rows_max(). Rows of sequences that are over are left out.
std::vector<LaidRow> LayOutRows(const SchedulerOptions& options, std::span<const Sequence> running);

}  // namespace levin
