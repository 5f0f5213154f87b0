#include "worker/schedule/generation_check.h"

#include <string>

#include "common/config/cache_cost.h"
#include "worker/plan/sampling_check.h"

namespace levin {
namespace {

Status CheckPrompt(const Generation& generation, int32_t vocab_size) {
  if (generation.prompt.empty())
    return InvalidArgument("the prompt is empty, expected at least one token").WithParam("prompt");
  for (size_t i = 0; i < generation.prompt.size(); ++i) {
    const TokenId id = generation.prompt[i];
    if (id < 0 || id >= vocab_size)
      return InvalidArgument("prompt token " + std::to_string(i) + " is " + std::to_string(id) +
                             ", expected an id in [0, " + std::to_string(vocab_size) + ")")
          .WithParam("prompt");
  }
  return Status::Ok();
}

}  // namespace

Status CheckGeneration(const Generation& generation, const SchedulerOptions& options) {
  RETURN_IF_ERROR(CheckPrompt(generation, options.vocab_size));
  if (generation.max_new_tokens < 0)
    return InvalidArgument("max_new_tokens is " + std::to_string(generation.max_new_tokens) +
                           ", expected 0 or more")
        .WithParam("max_new_tokens");
  RETURN_IF_ERROR(CheckSampling(generation.sampling, options.vocab_size));

  const auto prompt = static_cast<int64_t>(generation.prompt.size());
  const int64_t total = prompt + generation.max_new_tokens;
  const std::string numbers = std::to_string(prompt) + " prompt tokens and " +
                              std::to_string(generation.max_new_tokens) + " new tokens are " +
                              std::to_string(total) + ", ";
  if (total > options.max_model_len)
    return {Code::kInvalidArgument, "CONTEXT_LENGTH_EXCEEDED",
            numbers + "expected at most " + std::to_string(options.max_model_len)};
  const int64_t blocks =
      BlocksFor({.block_tokens = options.block_tokens}, prompt, generation.max_new_tokens);
  if (blocks > options.blocks)
    return {Code::kInvalidArgument, "CACHE_NEVER_FITS",
            numbers + "need " + std::to_string(blocks) + " cache blocks, this group has " +
                std::to_string(options.blocks)};
  return Status::Ok();
}

}  // namespace levin
