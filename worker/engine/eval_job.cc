#include "worker/engine/eval_job.h"

#include <algorithm>
#include <boost/json.hpp>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

namespace levin {
namespace {

namespace json = boost::json;

// Logits of every token of a step are kept in one buffer.
constexpr int64_t kStepLogitsMax = int64_t{1} << 28;

Status Bad(std::string_view field, const json::value& value, std::string_view expected) {
  return InvalidArgument("job field '" + std::string(field) + "' is " + json::serialize(value) +
                         ", expected " + std::string(expected))
      .WithParam(std::string(field));
}

Result<int32_t> Count(std::string_view field, const json::value& value) {
  if (!value.is_int64() || value.get_int64() < 0 || value.get_int64() > INT32_MAX)
    return Error(Bad(field, value, "a number from 0 to 2147483647"));
  return static_cast<int32_t>(value.get_int64());
}

Result<std::vector<TokenId>> Ids(const std::string& field, const json::value& value) {
  if (!value.is_array() || value.get_array().empty())
    return Error(Bad(field, value, "a list of at least one id"));
  std::vector<TokenId> ids;
  for (const json::value& id : value.get_array()) {
    ASSIGN_OR_RETURN(const int32_t number, Count(field, id));
    ids.push_back(number);
  }
  return ids;
}

Status SetPrompts(const json::value& value, EvalJob& job) {
  if (!value.is_object() || value.get_object().empty())
    return Bad("ids", value, "an object with at least one prompt");
  for (const auto& [name, ids] : value.get_object()) {
    ASSIGN_OR_RETURN_STATUS(std::vector<TokenId> prompt, Ids("ids." + std::string(name), ids));
    job.prompts.push_back({std::string(name), std::move(prompt)});
  }
  return Status::Ok();
}

Status SetNumber(std::string_view field, const json::value& value, int32_t& out) {
  ASSIGN_OR_RETURN_STATUS(out, Count(field, value));
  return Status::Ok();
}

Status SetFlag(std::string_view field, const json::value& value, bool& out) {
  if (!value.is_bool()) return Bad(field, value, "true or false");
  out = value.get_bool();
  return Status::Ok();
}

Status SetField(std::string_view field, const json::value& value, EvalJob& job) {
  if (field == "ids") return SetPrompts(value, job);
  if (field == "greedy") return SetNumber(field, value, job.greedy);
  if (field == "last") return SetNumber(field, value, job.last);
  if (field == "chunk_tokens") return SetNumber(field, value, job.chunk_tokens);
  if (field == "states") return SetFlag(field, value, job.states);
  if (field == "trace") return SetFlag(field, value, job.trace);
  if (field == "batch") return SetFlag(field, value, job.batch);
  if (field != "out") return Bad(field, value, "no such field");
  if (!value.is_string() || value.get_string().empty()) return Bad(field, value, "a path");
  job.out = std::string(value.get_string());
  return Status::Ok();
}

}  // namespace

Result<EvalJob> ParseEvalJob(const std::string& text) {
  boost::system::error_code failed;
  const json::value value = json::parse(text, failed);
  if (failed) return Error(InvalidArgument("job is not JSON: " + failed.message()));
  if (!value.is_object()) return Error(InvalidArgument("job is not a JSON object"));
  EvalJob job;
  for (const auto& [field, content] : value.get_object())
    RETURN_ERROR_IF(SetField(field, content, job));
  if (job.prompts.empty()) return Error(InvalidArgument("job has no field 'ids'"));
  if (job.out.empty()) return Error(InvalidArgument("job has no field 'out'"));
  return job;
}

Result<EvalJob> ReadEvalJob(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error(NotFound("cannot read the job file '" + path.string() + "'"));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  Result<EvalJob> job = ParseEvalJob(text);
  if (!job) return Error(std::move(job).error().Annotate("'" + path.string() + "'"));
  return job;
}

void ApplyEvalJob(const EvalJob& job, SchedulerOptions& options) {
  options.chunk_tokens = job.chunk_tokens;
  options.stepwise_prompt = job.chunk_tokens == 1;
  options.admission_skips = 0;
  options.waiting_max = std::max(options.waiting_max, static_cast<int32_t>(job.prompts.size()));
  const int64_t tokens = std::max<int64_t>(kStepLogitsMax / options.vocab_size, 1);
  options.tokens_per_step_max =
      static_cast<int32_t>(std::min<int64_t>(options.tokens_per_step_max, tokens));
}

}  // namespace levin
