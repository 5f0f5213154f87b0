#include "common/config/flag_set.h"
#include "common/config/option_checks.h"
#include "common/config/options.h"
#include "common/config/shared_flags.h"

namespace levin {

Result<Parsed<PlanOptions>> ParsePlanOptions(int argc, const char* const* argv) {
  Parsed<PlanOptions> parsed;
  PlanOptions& plan = parsed.options;
  FlagSet flags("levin plan",
                "What a model needs and what fits beside it; checks the folder, loads nothing.");
  std::string positional;
  flags.AddPositional("MODEL", positional,
                      "Folder with config.json; index and safetensors are checked when there");
  flags.Add("--model,--model-path", plan.model, "The same as a flag");
  flags.AddInt("--tensor-parallel-size,--tp", plan.world_size,
               "Ranks of the group, one device each", {1, 1024});
  AddTypes(flags, plan.dtype, plan.quantization);
  flags.AddBytes("--device-memory", plan.device_bytes, "Memory of one device (80GB, 96GiB)");
  flags.AddReal("--gpu-memory-utilization,--mem-fraction-static", plan.gpu_memory_utilization,
                "The part of it that may be used, above 0 and at most 1");
  flags.AddBytes(
      "--overhead-bytes", plan.overhead_bytes,
      "Everything else on a device: workspace, communication, context; unless given, 5.2GB, "
      "which the published contexts imply");
  flags.AddCount("--max-model-len,--context-length", plan.max_model_len,
                 "Longest sequence that must fit; 0: the longest that is worth offering");
  flags.AddInt("--max-num-seqs,--max-running-requests", plan.max_num_seqs,
               "Sequences that run at once", {1, 65536});
  flags.AddFlag("--json", plan.json, "The plan as one JSON object");
  flags.AddIgnored();
  RETURN_ERROR_IF(flags.Parse(argc, argv, parsed.help));
  if (!parsed.help.empty()) return parsed;
  RETURN_ERROR_IF(OneModel(positional, plan.model));
  if (plan.device_bytes == 0) {
    return Error(InvalidArgument(
        "--device-memory is missing: expected the bytes of one device, such as 80GB"));
  }
  if (!(plan.gpu_memory_utilization > 0 && plan.gpu_memory_utilization <= 1)) {
    return Error(InvalidArgument("--gpu-memory-utilization is " +
                                 std::to_string(plan.gpu_memory_utilization) +
                                 ", expected above 0 and at most 1"));
  }
  if (plan.dtype == "auto") plan.dtype = "bfloat16";
  return parsed;
}

}  // namespace levin
