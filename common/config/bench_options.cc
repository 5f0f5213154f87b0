#include "common/config/flag_set.h"
#include "common/config/option_checks.h"
#include "common/config/options.h"
#include "common/config/shared_flags.h"

namespace levin {
namespace {

constexpr const char* kKernels[] = {"all",       "matmul", "experts",          "lightning",
                                    "attention", "norms",  "lightning-context"};

Status CheckKernels(const BenchOptions& bench) {
  if (!bench.kernel) {
    if (bench.which == "all") return Status::Ok();
    return InvalidArgument("unexpected argument '" + bench.which + "': it goes with --kernel");
  }
  std::string expected;
  for (const char* name : kKernels) {
    if (bench.which == name) return Status::Ok();
    expected += (expected.empty() ? "" : ", ") + std::string(name);
  }
  return InvalidArgument("--kernel: unknown kernels '" + bench.which + "', expected one of " +
                         expected);
}

}  // namespace

Result<Parsed<BenchOptions>> ParseBenchOptions(int argc, const char* const* argv) {
  Parsed<BenchOptions> parsed;
  BenchOptions& bench = parsed.options;
  WorkerOptions& worker = bench.worker;
  FlagSet flags("levin bench", "Tokens per second of the engine; the last line is a JSON object.");
  flags.Add("--engine,--model", worker.model, "Folder with config.json and safetensors");
  flags.AddFlag("--kernel", bench.kernel,
                "No engine: the CPU kernels, each beside the roof of the same moment");
  flags.AddPositional("KERNELS", bench.which,
                      "With --kernel: all, matmul, experts, lightning, attention, norms, or "
                      "lightning-context (cost per token from 1K to 1M of context)");
  flags.AddInt("--prompt", bench.prompt, "Tokens to prefill", {0, 1 << 24});
  flags.AddInt("--gen", bench.gen, "Tokens to generate; above 0 these are timed, else the prompt",
               {0, 1 << 24});
  flags.AddInt("--depth", bench.depth, "Tokens in every sequence before the clock starts",
               {0, 1 << 24});
  flags.AddInt("--batch", bench.batch, "Sequences at once", {1, 4096});
  flags.AddInt("--rounds", bench.rounds,
               "Timed repetitions, the best counts; of kernels five times as many", {1, 1000});
  flags.AddInt("--tensor-parallel-size,--tp", worker.world_size, "Ranks of the group", {1, 1024});
  flags.AddInt("--threads", worker.cpu_threads, "The same as --cpu-threads", {0, 4096});
  AddModelNumbers(flags, worker);
  AddCache(flags, worker);
  AddLog(flags, worker.log);
  RETURN_ERROR_IF(flags.Parse(argc, argv, parsed.help));
  if (!parsed.help.empty()) return parsed;
  RETURN_ERROR_IF(CheckKernels(bench));
  if (bench.kernel) return parsed;
  RETURN_ERROR_IF(RequireModel(worker.model));
  if (bench.prompt == 0 && bench.gen == 0) {
    return Error(InvalidArgument("--prompt and --gen are both 0: nothing to time"));
  }
  RETURN_ERROR_IF(ResolveAuto(worker));
  return parsed;
}

}  // namespace levin
