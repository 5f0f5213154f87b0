// The leader's gauges, written at each scrape from what others keep anyway.
#pragma once

#include <cstdint>
#include <vector>

#include "common/inference/generation.h"
#include "common/metrics/worker_metrics.h"
#include "worker/group/rank_board.h"

namespace levin {

struct LeaderView {
  uint64_t epoch = 0;
  uint64_t steps_done = 0;
  int connected_routers = 0;
  Capacity capacity;
  int64_t blocks_used = 0;  // hold at least one token
  int ranks = 1;
  std::vector<RankView> others;  // [i]: rank i + 1
};

void WriteGauges(const LeaderView& view, const LeaderFamilies& families);

}  // namespace levin
