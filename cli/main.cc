// levin: serve a model on this host, check a checkpoint, measure.
#include <cstdio>
#include <string_view>

#include "cli/commands.h"
#include "common/base/version.h"

namespace {

struct Subcommand {
  std::string_view name;
  int (*run)(int argc, const char* const* argv);
  const char* about;
};

constexpr Subcommand kSubcommands[] = {
    {"serve", &levin::RunServe, "serve MODEL: router and tensor-parallel workers on this host"},
    {"eval", &levin::RunEval,
     "eval MODEL --ids FILE.json --out FILE.safetensors: logits, states, traces of a checkpoint"},
    {"bench", &levin::RunBench,
     "bench --engine MODEL: tokens per second of the engine; bench --kernel: of its kernels"},
    {"plan", &levin::RunPlan,
     "plan MODEL --device-memory BYTES: does it fit, how many sequences, which flags"},
};

void PrintUsage(std::FILE* to) {
  std::fprintf(to, "levin %s\nusage: levin COMMAND [flags]   (levin COMMAND --help shows them)\n\n",
               levin::kVersion);
  for (const Subcommand& subcommand : kSubcommands) std::fprintf(to, "  %s\n", subcommand.about);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "--help";
  for (const Subcommand& subcommand : kSubcommands) {
    if (name == subcommand.name) return subcommand.run(argc - 1, argv + 1);
  }
  if (name == "--version") return std::printf("levin %s\n", levin::kVersion), 0;
  if (name == "--help" || name == "-h") return PrintUsage(stdout), 0;
  std::fprintf(stderr, "levin: unknown command '%.*s', expected serve, eval, bench or plan\n",
               static_cast<int>(name.size()), name.data());
  return 2;
}
