#include "common/config/flag_set.h"
#include "common/config/option_checks.h"
#include "common/config/option_files.h"
#include "common/config/options.h"
#include "common/config/shared_flags.h"

namespace levin {

Result<Parsed<RouterOptions>> ParseRouterOptions(int argc, const char* const* argv) {
  Parsed<RouterOptions> parsed;
  RouterOptions& router = parsed.options;
  FlagSet flags("levin-router", "HTTP and gRPC for clients; forwards to worker groups.");
  flags.Add("--model,--tokenizer", router.model, "Folder with config.json and tokenizer.json");
  flags.AddList("--group,--engine", router.groups, "Engine address of a worker group (repeatable)");
  flags.AddCount("--max-model-len,--context-length", router.max_model_len,
                 "Longest sequence; 0: the group's");
  std::string grpc_port = "50051";
  AddGrpcPort(flags, grpc_port);
  flags.Add("--grpc-host", router.grpc_host, "gRPC address; empty: as --host");
  flags.Add("--dtype", router.dtype, "What the group computes in (for GetModel)");
  flags.Add("--quantization,-q", router.quantization,
            "How the group's experts are stored (for GetModel)");
  AddRouter(flags, router);
  AddLog(flags, router.log);
  RETURN_ERROR_IF(flags.Parse(argc, argv, parsed.help));
  if (!parsed.help.empty()) return parsed;
  RETURN_ERROR_IF(RequireModel(router.model));
  if (router.groups.empty()) {
    return Error(
        InvalidArgument("--group is missing: expected the Engine address of a worker group"));
  }
  ASSIGN_OR_RETURN(router.grpc_port, PortOrOff(grpc_port, "--grpc-port"));
  RETURN_ERROR_IF(ReadKeyFile(router.api_keys));
  return parsed;
}

}  // namespace levin
