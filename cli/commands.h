// The subcommands of `levin`. argv[0] is the command's name; the result is the exit code:
// 0 done, 1 other, 2 arguments or configuration, 3 model folder, 4 memory, 5 port in use, 6 group
// ended.
#pragma once

namespace levin {

int RunServe(int argc, const char* const* argv);
int RunEval(int argc, const char* const* argv);
int RunBench(int argc, const char* const* argv);
int RunPlan(int argc, const char* const* argv);

}  // namespace levin
