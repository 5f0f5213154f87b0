#include "common/config/flag_set.h"
#include "common/config/option_checks.h"
#include "common/config/options.h"
#include "common/config/shared_flags.h"

namespace levin {

Result<Parsed<WorkerOptions>> ParseWorkerOptions(int argc, const char* const* argv) {
  Parsed<WorkerOptions> parsed;
  WorkerOptions& worker = parsed.options;
  FlagSet flags("levin-worker", "One rank of a worker group: its device, its shard of the model.");
  flags.Add("--model", worker.model, "Folder with config.json and safetensors");
  flags.AddInt("--rank", worker.rank, "This process's rank; 0 leads", {0, 1023});
  flags.AddInt("--world-size", worker.world_size, "Ranks of the group", {1, 1024});
  flags.Add("--leader", worker.leader,
            "The leader's Group address, HOST:PORT or unix:PATH (ranks above 0)");
  flags.Add("--engine-listen", worker.engine_listen, "Leader: address of the Engine service");
  flags.Add("--group-listen", worker.group_listen, "Leader: address of the Group service");
  flags.Add("--metrics-host", worker.metrics_host, "Address of health and metrics");
  std::string metrics_port = "off";
  flags.Add("--metrics-port", metrics_port,
            "Port of health and metrics; 0: any free one; off: none");
  flags.Add("--epoch-file", worker.epoch_file, "Where the leader keeps its epoch over restarts");
  flags.AddCount("--max-model-len,--context-length", worker.max_model_len,
                 "Longest sequence; 0: what the cache holds");
  flags.Add("--eval-job", worker.eval_job, "Job of levin eval: generations come from this file");
  flags.AddTestHook("--test-corrupt-rank", worker.corrupt_rank,
                    "Test hook: this rank damages a weight in memory");
  AddModelNumbers(flags, worker);
  AddCache(flags, worker);
  AddLog(flags, worker.log);
  RETURN_ERROR_IF(flags.Parse(argc, argv, parsed.help));
  if (!parsed.help.empty()) return parsed;
  RETURN_ERROR_IF(RequireModel(worker.model));
  if (worker.rank >= worker.world_size) {
    return Error(InvalidArgument("--rank is " + std::to_string(worker.rank) +
                                 ", expected less than --world-size " +
                                 std::to_string(worker.world_size)));
  }
  RETURN_ERROR_IF(CheckCorruptRank(worker));
  if (worker.rank > 0 && worker.leader.empty()) {
    return Error(InvalidArgument("--leader is missing: rank " + std::to_string(worker.rank) +
                                 " needs the leader's address"));
  }
  ASSIGN_OR_RETURN(worker.metrics_port, PortOrOff(metrics_port, "--metrics-port"));
  RETURN_ERROR_IF(ResolveAuto(worker));
  return parsed;
}

}  // namespace levin
