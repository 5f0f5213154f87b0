// What must hold between the values of flags, or of one beyond its type; several programs ask it.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/config/options.h"

namespace levin {

// "off" (-1) or a port.
Result<int> PortOrOff(const std::string& text, const char* flag);
Status RequireModel(const std::string& model);
// MODEL and --model are two ways to say it.
Status OneModel(const std::string& positional, std::string& model);
// --test-corrupt-rank: a rank of the group, or -1 for none.
Status CheckCorruptRank(const WorkerOptions& worker);
// Every "auto" gets its value. kInvalidArgument for --no-batch-invariant with float32.
Status ResolveAuto(WorkerOptions& worker);

}  // namespace levin
