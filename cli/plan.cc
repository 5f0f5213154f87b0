#include <cstdio>

#include "cli/commands.h"
#include "cli/plan_report.h"

namespace levin {

int RunPlan(int argc, const char* const* argv) {
  const Result<Parsed<PlanOptions>> parsed = ParsePlanOptions(argc, argv);
  if (!parsed) {
    std::fprintf(stderr, "levin plan: %s\n", parsed.error().message().c_str());
    return 2;
  }
  if (!parsed->help.empty()) return std::fputs(parsed->help.c_str(), stdout), 0;
  const auto plan = MakeModelPlan(parsed->options);
  if (!plan) {
    std::fprintf(stderr, "levin plan: %s\n", plan.error().status.message().c_str());
    return plan.error().exit_code;
  }
  const std::string text = parsed->options.json ? PlanJson(*plan) : PlanText(*plan);
  std::fputs(text.c_str(), stdout);
  if (plan->memory.fits) return 0;
  std::fprintf(stderr, "levin plan: %s\n", MisfitText(*plan).c_str());
  return 4;
}

}  // namespace levin
