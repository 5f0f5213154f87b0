#include <signal.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/eval_compare.h"
#include "cli/worker_group.h"
#include "common/config/model_config.h"
#include "common/config/regular_file.h"

namespace levin {
namespace {

namespace json = boost::json;

int Complain(const Status& status, int exit_code) {
  std::fprintf(stderr, "levin eval: %s\n", status.message().c_str());
  return exit_code;
}

constexpr int64_t kIdsBytesMax = int64_t{1} << 30;

// Before weights are read: a long check must not fail at its end. Devices and folders are not
// replaced.
Status CheckOut(const std::string& out) {
  const std::filesystem::path path = std::filesystem::absolute(out);
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return InvalidArgument("--out: '" + out + "' exists and is no regular file");
  }
  if (access(path.parent_path().c_str(), W_OK | X_OK) != 0) {
    return InvalidArgument("--out: cannot write '" + out + "': " + std::strerror(errno));
  }
  return Status::Ok();
}

// {"name": [ids...], ...}, checked against the vocabulary.
Result<json::object> ReadIds(const std::string& path, int32_t vocab) {
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, kIdsBytesMax));
  boost::system::error_code error;
  const json::value value = json::parse(text, error);
  if (error || !value.is_object()) {
    return Error(
        InvalidArgument("--ids: '" + path + "' is not a JSON object {\"name\": [ids...]}"));
  }
  for (const auto& [name, ids] : value.get_object()) {
    const std::string where = "--ids: '" + std::string(name) + "'";
    if (!ids.is_array() || ids.get_array().empty()) {
      return Error(InvalidArgument(where + " is not a non-empty list of ids"));
    }
    for (const json::value& id : ids.get_array()) {
      if (!id.is_int64() || id.get_int64() < 0 || id.get_int64() >= vocab) {
        return Error(InvalidArgument(where + " holds " + json::serialize(id) +
                                     ", expected ids from 0 to " + std::to_string(vocab - 1)));
      }
    }
  }
  if (value.get_object().empty())
    return Error(InvalidArgument("--ids: '" + path + "' names no prompt"));
  return value.get_object();
}

Result<std::string> WriteJob(const EvalOptions& options, json::object ids,
                             const RunDirectory& directory) {
  const json::object job = {
      {"ids", std::move(ids)},    {"out", std::filesystem::absolute(options.out_file).string()},
      {"greedy", options.greedy}, {"states", options.states},
      {"trace", options.trace},   {"chunk_tokens", options.chunk_tokens},
      {"last", options.last},     {"batch", options.batch}};
  return directory.WriteOptions("job.json", {json::serialize(job)});
}

// The reference, before the run; what it holds is asked of the run as well.
Result<std::optional<SafetensorsFile>> OpenReference(EvalOptions& options) {
  if (options.compare_file.empty()) return std::nullopt;
  ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(options.compare_file));
  for (const StoredTensor& tensor : file.tensors()) {
    options.states |= tensor.name.find(".state.") != std::string::npos;
    options.trace |= tensor.name.find(".trace.") != std::string::npos;
  }
  return file;
}

// 0 when all is within the tolerance.
int CompareWith(const SafetensorsFile& reference, const EvalOptions& options,
                const std::vector<std::string>& prompts) {
  const Result<SafetensorsFile> run = SafetensorsFile::Open(options.out_file);
  if (!run) return Complain(run.error(), 1);
  const auto comparison = CompareEval(*run, reference, prompts, options.tolerance);
  if (!comparison) return Complain(comparison.error(), 2);
  std::fputs(ComparisonText(*comparison, options.tolerance).c_str(), stdout);
  for (const ValueDifference& value : comparison->values)
    if (!Within(value, options.tolerance)) return 1;
  return 0;
}

// Until every rank has left. The job is done when all say 0.
int Wait(WorkerGroup& group, Children& children) {
  bool stopped = false;
  while (!group.gone()) {
    const TimePoint far = std::chrono::steady_clock::now() + std::chrono::hours(1);
    const auto event = children.Next(group.exit_code() == 0 ? far : group.kill_at().value_or(far));
    if (event && event->kind == ChildEvent::kSignal) {
      stopped = true;
      group.Signal(SIGKILL);
    } else if (event) {
      group.Handle(*event);
    }
    if (group.exit_code() != 0) group.KillIfLate(std::chrono::steady_clock::now());
  }
  if (stopped) return 1;
  if (group.exit_code() != 0) std::fprintf(stderr, "levin eval: %s\n", group.end_reason().c_str());
  return group.exit_code();
}

}  // namespace

int RunEval(int argc, const char* const* argv) {
  Result<Parsed<EvalOptions>> parsed = ParseEvalOptions(argc, argv);
  if (!parsed) return Complain(parsed.error(), 2);
  if (!parsed->help.empty()) return std::fputs(parsed->help.c_str(), stdout), 0;
  EvalOptions& options = parsed->options;
  const Result<ModelConfig> config = LoadModelConfig(options.worker.model);
  if (!config) return Complain(config.error(), 3);
  if (Status status = CheckTensorParallel(*config, options.worker.world_size); !status.ok()) {
    return Complain(status, 2);
  }
  Result<boost::json::object> ids = ReadIds(options.ids_file, config->vocab);
  if (!ids) return Complain(ids.error(), 2);
  if (Status status = CheckOut(options.out_file); !status.ok()) return Complain(status, 2);
  const Result<std::optional<SafetensorsFile>> reference = OpenReference(options);
  if (!reference) return Complain(reference.error(), 2);
  std::vector<std::string> prompts;
  for (const auto& [name, list] : *ids) prompts.emplace_back(name);
  Result<Children> children = Children::Create();
  if (!children) return Complain(children.error(), 1);
  const Result<RunDirectory> directory = RunDirectory::Create();
  if (!directory) return Complain(directory.error(), 1);
  Result<std::string> job = WriteJob(options, *std::move(ids), *directory);
  if (!job) return Complain(job.error(), 1);
  options.worker.eval_job = *job;
  WorkerGroup group(options.worker, *directory, *children);
  if (Status status = group.Start(); !status.ok()) return Complain(status, 1);
  const int exit_code = Wait(group, *children);
  if (exit_code != 0 || !*reference) return exit_code;
  return CompareWith(**reference, options, prompts);
}

}  // namespace levin
