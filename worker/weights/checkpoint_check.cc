#include "worker/weights/checkpoint_check.h"

#include <unordered_set>

namespace levin {
namespace {

Status CheckStored(const SafetensorsFile& file, const StoredTensor& stored,
                   const NeededTensor& needed) {
  const std::string who = "tensor '" + stored.name + "' in '" + file.path().string() + "'";
  if (!Accepts(needed.type, stored.dtype)) {
    const bool int8 = stored.dtype == "I8" || needed.type == StoredAs::kI8;
    return InvalidArgument(who + " has dtype " + stored.dtype + ", expected " +
                           std::string(Name(needed.type)) +
                           (int8 ? std::string(" (config.json ") +
                                       (needed.type == StoredAs::kI8 ? "says" : "does not say") +
                                       " that experts are stored as experts_int8)"
                                 : ""));
  }
  std::vector<int64_t> shape = stored.shape;
  if (IsScale(needed.piece) && shape.size() == 2 && shape[1] == 1) shape.pop_back();
  if (shape == needed.shape) return Status::Ok();
  return InvalidArgument(who + " has shape " + ShapeText(stored.shape) + ", expected " +
                         ShapeText(needed.shape));
}

Status NameError(const std::vector<std::string>& missing, const std::vector<std::string>& unknown) {
  if (missing.empty() && unknown.empty()) return Status::Ok();
  std::string message =
      "the checkpoint's tensors are not those of the network that config.json describes";
  if (!missing.empty()) message += "; missing, " + ListText(missing);
  if (!unknown.empty()) message += "; unknown, " + ListText(unknown);
  return InvalidArgument(message);
}

}  // namespace

NeededByName ByName(const std::vector<NeededTensor>& needed) {
  NeededByName by_name;
  for (const NeededTensor& tensor : needed) by_name.emplace(tensor.name, &tensor);
  return by_name;
}

Status CheckTensors(const Checkpoint& checkpoint, const std::vector<NeededTensor>& needed,
                    const ModelConfig& config) {
  const NeededByName by_name = ByName(needed);
  std::vector<std::string_view> given;
  for (const SafetensorsFile& file : checkpoint.files()) {
    for (const StoredTensor& stored : file.tensors()) {
      given.push_back(stored.name);
      const auto entry = by_name.find(stored.name);
      if (entry != by_name.end()) RETURN_IF_ERROR(CheckStored(file, stored, *entry->second));
    }
  }
  return CheckNames(given, needed, config);
}

Status CheckNames(const std::vector<std::string_view>& given,
                  const std::vector<NeededTensor>& needed, const ModelConfig& config) {
  const NeededByName by_name = ByName(needed);
  const std::unordered_set<std::string_view> names(given.begin(), given.end());
  std::vector<std::string> unknown;
  std::vector<std::string> missing;
  for (std::string_view name : given) {
    if (!by_name.contains(name) && !IsIgnored(name, config)) unknown.emplace_back(name);
  }
  for (const NeededTensor& tensor : needed) {
    if (!names.contains(tensor.name)) missing.push_back(tensor.name);
  }
  return NameError(missing, unknown);
}

}  // namespace levin
