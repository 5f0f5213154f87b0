#include "common/config/flag_set.h"
#include "common/config/option_checks.h"
#include "common/config/option_files.h"
#include "common/config/options.h"
#include "common/config/shared_flags.h"

namespace levin {

Result<Parsed<ServeOptions>> ParseServeOptions(int argc, const char* const* argv) {
  Parsed<ServeOptions> parsed;
  WorkerOptions& worker = parsed.options.worker;
  RouterOptions& router = parsed.options.router;
  FlagSet flags("levin serve",
                "Serve a model on this host: one router and a tensor-parallel worker group.");
  std::string positional;
  flags.AddPositional("MODEL", positional,
                      "Folder with config.json, tokenizer.json and safetensors");
  flags.Add("--model,--model-path", worker.model, "The same as a flag");
  flags.AddInt("--tensor-parallel-size,--tp", worker.world_size, "Ranks of the group", {1, 1024});
  flags.AddCount("--max-model-len,--context-length", worker.max_model_len,
                 "Longest sequence; 0: what the cache holds for one request");
  std::string grpc_port = "50051";
  AddGrpcPort(flags, grpc_port);
  AddModelNumbers(flags, worker);
  AddCache(flags, worker);
  AddRouter(flags, router);
  AddLog(flags, worker.log);
  flags.AddIgnored();
  RETURN_ERROR_IF(flags.Parse(argc, argv, parsed.help));
  if (!parsed.help.empty()) return parsed;
  RETURN_ERROR_IF(OneModel(positional, worker.model));
  ASSIGN_OR_RETURN(router.grpc_port, PortOrOff(grpc_port, "--grpc-port"));
  RETURN_ERROR_IF(ReadKeyFile(router.api_keys));
  RETURN_ERROR_IF(ResolveAuto(worker));
  router.model = worker.model;
  router.max_model_len = worker.max_model_len;
  router.dtype = worker.dtype;
  router.quantization = worker.quantization;
  router.log = worker.log;
  return parsed;
}

}  // namespace levin
