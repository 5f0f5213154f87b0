// The line that shows weights arriving: each 5 % or each second, whichever is first, and at the
// end. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/clock.h"

namespace levin {

class LoadProgress final {
 public:
  LoadProgress(int rank, const Clock& clock) : rank_(rank), clock_(clock) {}

  // "levin-worker: rank 0 loading 35% (70 of 200 MB)", or nothing to say now.
  std::optional<std::string> Line(int64_t bytes_done, int64_t bytes_total);

 private:
  const int rank_;
  const Clock& clock_;
  int64_t shown_percent_ = -1;
  TimePoint shown_at_;
};

}  // namespace levin
