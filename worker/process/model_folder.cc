#include "worker/process/model_folder.h"

#include <xxhash.h>

#include <fstream>
#include <sstream>
#include <string>

namespace levin {
namespace {

uint64_t ConfigHash(const WorkerOptions& options, uint64_t tokenizer_hash) {
  std::ostringstream text;
  text << std::ifstream(options.model + "/config.json").rdbuf();
  text << '\0' << options.world_size << '\0' << options.dtype << '\0' << options.quantization
       << '\0' << options.batch_invariant.value_or(false) << '\0' << options.max_num_seqs << '\0'
       << options.max_num_batched_tokens << '\0' << options.lightning_norm_eps << '\0'
       << options.device << '\0' << options.eval_job << '\0' << tokenizer_hash;
  const std::string bytes = text.str();
  return XXH3_64bits(bytes.data(), bytes.size());
}

Status CheckQuantization(const WorkerOptions& options, const ModelConfig& config) {
  if (config.experts_stored_int8 && options.quantization == "none") {
    return InvalidArgument(
        "--quantization is none, but the checkpoint's experts are stored as int8: expected "
        "experts_int8 or auto");
  }
  return Status::Ok();
}

Status CheckDevice(const WorkerOptions& options) {
  if (options.device == "cpu") return Status::Ok();
  return Unimplemented("--device is '" + options.device + "', only cpu is built");
}

}  // namespace

OrExit<ModelFolder> ReadModelFolder(const WorkerOptions& options) {
  if (Status device = CheckDevice(options); !device.ok())
    return ExitWith(ExitCode::kConfig, device);
  ModelFolder folder;
  Result<ModelConfig> config = LoadModelConfig(options.model);
  if (!config) return ExitWith(ExitCode::kModel, std::move(config).error());
  folder.config = *std::move(config);
  folder.config.lightning_norm_eps = options.lightning_norm_eps;
  for (const Status& status : {CheckTensorParallel(folder.config, options.world_size),
                               CheckQuantization(options, folder.config)}) {
    if (!status.ok()) return ExitWith(ExitCode::kConfig, status);
  }
  Result<TokenizerFacts> tokenizer = DefinedTokens(options.model, folder.config.vocab);
  if (!tokenizer) return ExitWith(ExitCode::kModel, std::move(tokenizer).error());
  folder.tokenizer = *std::move(tokenizer);
  folder.config_hash = ConfigHash(options, folder.tokenizer.hash);
  return folder;
}

}  // namespace levin
