// What every rank reads of the model folder before it meets the others: small files, no weights.
#pragma once

#include <cstdint>

#include "common/config/defined_tokens.h"
#include "common/config/model_config.h"
#include "common/config/options.h"
#include "worker/process/exit_code.h"

namespace levin {

struct ModelFolder {
  ModelConfig config;
  TokenizerFacts tokenizer;
  uint64_t config_hash = 0;  // of all that must be equal on every rank (protocol.md 6)
};

// ExitCode::kModel for what the folder says wrong, kConfig for options that do not fit it (a number
// of ranks that does not divide it, quantization none on quantised experts).
OrExit<ModelFolder> ReadModelFolder(const WorkerOptions& options);

}  // namespace levin
