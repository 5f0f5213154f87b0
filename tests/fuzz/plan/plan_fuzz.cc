// A plan's bytes from a stranger: decoded, checked against a rank's table, executed. Whatever
// decodes must encode to the same bytes.
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "tests/support/scripted_model.h"
#include "worker/engine/rank_executor.h"
#include "worker/plan/plan_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const levin::Result<levin::BatchPlan> plan = levin::DecodePlan(bytes)) {
    CHECK(levin::EncodePlan(*plan) == bytes);
    levin::testing::ScriptedModel model(4, 16, 4, 32);
    const levin::PlanLimits limits{.epoch = plan->epoch,
                                   .slots = 4,
                                   .blocks = 16,
                                   .block_tokens = 4,
                                   .rows_max = 4,
                                   .tokens_max = 32,
                                   .vocab_size = 32};
    levin::RankExecutor executor(limits, model, {});
    (void)executor.Execute(bytes);
  }
  return 0;
}
