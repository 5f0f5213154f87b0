#include <cstdio>
#include <filesystem>

#include "cli/commands.h"
#include "cli/supervisor.h"
#include "common/config/model_config.h"

namespace levin {
namespace {

int Complain(const Status& status, int exit_code) {
  std::fprintf(stderr, "levin serve: %s\n", status.message().c_str());
  return exit_code;
}

// The folder's name, and the path as it was given.
void NameModel(RouterOptions& router) {
  if (!router.served_model_names.empty()) return;
  std::filesystem::path path(router.model);
  if (path.filename().empty()) path = path.parent_path();
  router.served_model_names.push_back(path.filename().string());
  if (path.string() != router.served_model_names.front()) {
    router.served_model_names.push_back(path.string());
  }
}

}  // namespace

int RunServe(int argc, const char* const* argv) {
  Result<Parsed<ServeOptions>> parsed = ParseServeOptions(argc, argv);
  if (!parsed) return Complain(parsed.error(), 2);
  if (!parsed->help.empty()) return std::fputs(parsed->help.c_str(), stdout), 0;
  ServeOptions& options = parsed->options;
  const Result<ModelConfig> config = LoadModelConfig(options.worker.model);
  if (!config) return Complain(config.error(), 3);
  if (Status status = CheckTensorParallel(*config, options.worker.world_size); !status.ok()) {
    return Complain(status, 2);
  }
  NameModel(options.router);
  if (options.router.quantization == "auto") {
    options.router.quantization = config->experts_stored_int8 ? "experts_int8" : "none";
  }
  if (options.router.api_keys.empty() && options.router.host != "127.0.0.1" &&
      options.router.host != "::1" && options.router.host != "localhost") {
    std::fprintf(
        stderr,
        "levin: warning: listening on %s without --api-key: anybody who reaches it may use it\n",
        options.router.host.c_str());
  }
  Result<Children> children = Children::Create();
  if (!children) return Complain(children.error(), 1);
  const Result<RunDirectory> directory = RunDirectory::Create();
  if (!directory) return Complain(directory.error(), 1);
  return Supervisor(options, *directory, *children).Run();
}

}  // namespace levin
