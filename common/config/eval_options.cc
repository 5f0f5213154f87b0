#include "common/config/flag_set.h"
#include "common/config/option_checks.h"
#include "common/config/options.h"
#include "common/config/shared_flags.h"

namespace levin {

Result<Parsed<EvalOptions>> ParseEvalOptions(int argc, const char* const* argv) {
  Parsed<EvalOptions> parsed;
  EvalOptions& eval = parsed.options;
  FlagSet flags(
      "levin eval",
      "Known values of a checkpoint: logits, greedy tokens, states and traces of given ids.");
  flags.AddPositional("MODEL", eval.worker.model, "Folder with config.json and safetensors");
  flags.Add("--ids", eval.ids_file, "JSON file: {\"name\": [ids...], ...}");
  flags.Add("--out", eval.out_file,
            "Safetensors file to write: NAME.logits [positions, vocabulary] and more");
  flags.AddInt("--greedy", eval.greedy,
               "Also this many greedy tokens (NAME.greedy); the end token ends nothing",
               {0, 1 << 20});
  flags.AddFlag("--states", eval.states, "Also NAME.state.LAYER after the last id");
  flags.AddFlag("--trace", eval.trace, "Also NAME.trace.WHAT of every position");
  flags.AddInt("--last", eval.last, "Logits and traces of so many last positions only; 0: all",
               {0, 1 << 24});
  flags.Add("--compare", eval.compare_file,
            "Compare with this safetensors file of known values, layer by layer; exit 1 outside "
            "the tolerance");
  flags.AddReal("--tolerance", eval.tolerance,
                "Largest difference that passes, relative to a layer's largest value");
  flags.AddFlag("--batch", eval.batch, "All names as one batch, else one after the other");
  flags.AddInt("--chunk-tokens", eval.chunk_tokens,
               "Feed prompts in chunks of so many; 1: the one-token form", {1, 1 << 20});
  flags.AddInt("--tensor-parallel-size,--tp", eval.worker.world_size, "Ranks of the group",
               {1, 1024});
  flags.AddTestHook("--test-corrupt-rank", eval.worker.corrupt_rank,
                    "Test hook: this rank damages a weight in memory");
  AddModelNumbers(flags, eval.worker);
  AddCache(flags, eval.worker);
  AddLog(flags, eval.worker.log);
  RETURN_ERROR_IF(flags.Parse(argc, argv, parsed.help));
  if (!parsed.help.empty()) return parsed;
  RETURN_ERROR_IF(RequireModel(eval.worker.model));
  if (eval.ids_file.empty())
    return Error(InvalidArgument("--ids is missing: expected a JSON file of prompts"));
  if (eval.out_file.empty())
    return Error(InvalidArgument("--out is missing: expected the file to write"));
  if (!(eval.tolerance >= 0))
    return Error(InvalidArgument("--tolerance is " + std::to_string(eval.tolerance) +
                                 ", expected 0 or more"));
  RETURN_ERROR_IF(CheckCorruptRank(eval.worker));
  RETURN_ERROR_IF(ResolveAuto(eval.worker));
  return parsed;
}

}  // namespace levin
