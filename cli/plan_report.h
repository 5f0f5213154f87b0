// A plan for people, and for programs.
#pragma once

#include <string>

#include "cli/plan_model.h"

namespace levin {

std::string PlanText(const ModelPlan& plan);
std::string PlanJson(const ModelPlan& plan);  // one object, one line

// "needs 119.36 GB on each of 8 ranks ..., but 0.95 of 80.00 GB are 76.00 GB; would fit: ..."
std::string MisfitText(const ModelPlan& plan);

}  // namespace levin
