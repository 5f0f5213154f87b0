#include "worker/plan/batch_plan.h"

#include <algorithm>

namespace levin {

int64_t AttendedPairs(const BatchPlan& plan) {
  int64_t pairs = 0;
  for (const PlanRow& row : plan.rows) {
    const int64_t tokens = std::max<int32_t>(row.tokens.count, 1);
    pairs += tokens * (row.position + tokens);
  }
  return pairs;
}

}  // namespace levin
