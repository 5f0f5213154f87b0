// The job of `levin eval`: known prompts through the same scheduler, plans and kernels as serving.
// Every rank reads the same job file; worker/eval feeds it and collects what comes by.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/types.h"
#include "worker/schedule/scheduler.h"

namespace levin {

struct EvalPrompt {
  std::string name;
  std::vector<TokenId> ids;
};

// The file: {"ids": {"NAME": [1, 2], ...}, "out": "PATH", "greedy": 0, "states": false,
// "trace": false, "last": 0, "chunk_tokens": 0, "batch": false}; all but ids and out may be left
// out.
struct EvalJob {
  std::vector<EvalPrompt> prompts;  // in the order of the file
  std::string out;
  int32_t greedy = 0;        // tokens drawn greedily after the prompt; the end token ends nothing
  bool states = false;       // lightning states after the prompt's last id
  bool trace = false;        // layer outputs of every prompt position
  int32_t last = 0;          // > 0: logits and traces of so many last prompt positions only
  int32_t chunk_tokens = 0;  // 0: as in serving; 1: the one-token form
  bool batch = false;        // all prompts at once, else one after the other
};

// Errors name the file and the field.
Result<EvalJob> ReadEvalJob(const std::filesystem::path& path);
Result<EvalJob> ParseEvalJob(const std::string& json);

// The scheduler of a job, the same on every rank: strict order of the file, so that sequence i + 1
// is prompts[i]; steps whose logits fit into memory.
void ApplyEvalJob(const EvalJob& job, SchedulerOptions& options);

}  // namespace levin
