#include "common/config/option_checks.h"

#include <charconv>

namespace levin {

Result<int> PortOrOff(const std::string& text, const char* flag) {
  if (text == "off") return -1;
  int port = -1;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port < 0 || port > 65535) {
    return Error(InvalidArgument(std::string(flag) + ": '" + text +
                                 "' is neither a port (0 to 65535) nor 'off'"));
  }
  return port;
}

Status RequireModel(const std::string& model) {
  if (model.empty()) return InvalidArgument("no model given, expected a folder with config.json");
  return Status::Ok();
}

Status OneModel(const std::string& positional, std::string& model) {
  if (!positional.empty() && !model.empty() && positional != model) {
    return InvalidArgument("two models given: '" + positional + "' and --model '" + model + "'");
  }
  if (model.empty()) model = positional;
  return RequireModel(model);
}

Status CheckCorruptRank(const WorkerOptions& worker) {
  if (worker.corrupt_rank >= -1 && worker.corrupt_rank < worker.world_size) return Status::Ok();
  return InvalidArgument("--test-corrupt-rank is " + std::to_string(worker.corrupt_rank) +
                         ", expected a rank of the group, 0 to " +
                         std::to_string(worker.world_size - 1) + ", or -1 for none");
}

Status ResolveAuto(WorkerOptions& worker) {
  if (worker.dtype == "auto") worker.dtype = "bfloat16";
  if (worker.device == "auto") worker.device = "cpu";
  const bool exact = worker.dtype == "float32";
  if (exact && !worker.batch_invariant.value_or(true))
    return InvalidArgument(
        "--no-batch-invariant with --dtype float32: the exactness mode is always batch-invariant, "
        "expected --dtype bfloat16 or no such flag");
  worker.batch_invariant = worker.batch_invariant.value_or(exact);
  return Status::Ok();
}

}  // namespace levin
