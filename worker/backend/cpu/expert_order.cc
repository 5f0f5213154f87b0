#include "worker/backend/cpu/expert_order.h"

#include <algorithm>

#include "common/base/check.h"

namespace levin {

ExpertOrder OrderByExpert(std::span<const int32_t> chosen, int64_t k, int64_t experts,
                          std::span<int32_t> scratch) {
  const size_t entries = chosen.size();
  CHECK_LE(2 * entries + experts + 1, scratch.size());
  const ExpertOrder order{scratch.first(experts + 1), scratch.subspan(experts + 1, entries),
                          scratch.subspan(experts + 1 + entries, entries)};
  std::fill(order.first.begin(), order.first.end(), 0);
  for (int32_t e : chosen) ++order.first[e + 1];
  for (int64_t e = 0; e < experts; ++e) order.first[e + 1] += order.first[e];
  // first[e] serves as the cursor of e, which ends where e + 1 began: shift back at the end.
  for (size_t i = 0; i < entries; ++i) {
    const int32_t at = order.first[chosen[i]]++;
    order.token[at] = static_cast<int32_t>(static_cast<int64_t>(i) / k);
    order.place[at] = static_cast<int32_t>(i);
  }
  for (int64_t e = experts; e > 0; --e) order.first[e] = order.first[e - 1];
  order.first[0] = 0;
  return order;
}

}  // namespace levin
