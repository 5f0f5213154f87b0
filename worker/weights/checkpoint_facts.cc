#include "worker/weights/checkpoint_facts.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "worker/weights/checkpoint.h"
#include "worker/weights/checkpoint_check.h"
#include "worker/weights/needed_tensors.h"

namespace levin {
namespace {

using Source = CheckpointFacts::Source;

int64_t PublishedBytes(const std::vector<NeededTensor>& needed) {
  int64_t bytes = 0;
  for (const NeededTensor& tensor : needed) {
    int64_t elements = 1;
    for (int64_t dim : tensor.shape) elements *= dim;
    const bool wide = tensor.type == StoredAs::kF32 || tensor.piece == WeightPiece::kGate;
    bytes += elements * (wide ? 4 : tensor.type == StoredAs::kI8 ? 1 : 2);
  }
  return bytes;
}

Result<CheckpointFacts> FromHeaders(const std::filesystem::path& model_dir,
                                    const ModelConfig& config) {
  ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(model_dir));
  const std::vector<NeededTensor> needed =
      NeededTensors(config, [&](std::string_view name) { return checkpoint.Has(name); });
  RETURN_ERROR_IF(CheckTensors(checkpoint, needed, config));
  CheckpointFacts facts{.source = Source::kHeaders, .bytes_are_known = true};
  facts.files = static_cast<int64_t>(checkpoint.files().size());
  for (const SafetensorsFile& file : checkpoint.files()) {
    facts.tensors += static_cast<int64_t>(file.tensors().size());
    for (const StoredTensor& tensor : file.tensors()) facts.bytes += tensor.bytes;
  }
  return facts;
}

Result<CheckpointFacts> FromIndex(const SafetensorsIndex& index, const ModelConfig& config) {
  const std::vector<NeededTensor> needed = NeededTensors(
      config, [&](std::string_view name) { return index.shards.contains(std::string(name)); });
  std::vector<std::string_view> given;
  std::set<std::string_view> files;
  for (const auto& [tensor, file] : index.shards) {
    given.push_back(tensor);
    files.insert(file);
  }
  RETURN_ERROR_IF(CheckNames(given, needed, config));
  return CheckpointFacts{.source = Source::kIndex,
                         .tensors = static_cast<int64_t>(given.size()),
                         .files = static_cast<int64_t>(files.size()),
                         .bytes = PublishedBytes(needed)};
}

bool Exists(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

bool AnyExists(const std::filesystem::path& model_dir, const SafetensorsIndex& index) {
  for (const auto& [tensor, file] : index.shards) {
    if (Exists(model_dir / file)) return true;
  }
  return false;
}

}  // namespace

Result<CheckpointFacts> InspectCheckpoint(const std::filesystem::path& model_dir,
                                          const ModelConfig& config) {
  ASSIGN_OR_RETURN(const std::optional<SafetensorsIndex> index, ReadIndex(model_dir));
  Result<CheckpointFacts> facts;
  if (index ? AnyExists(model_dir, *index) : Exists(model_dir / kSingleFile)) {
    facts = FromHeaders(model_dir, config);
  } else if (index) {
    facts = FromIndex(*index, config);
  } else {
    const auto needed = NeededTensors(config, [](std::string_view) { return false; });
    facts->tensors = static_cast<int64_t>(needed.size());
    facts->bytes = PublishedBytes(needed);
  }
  if (facts && index) facts->index_bytes = index->total_size;
  return facts;
}

}  // namespace levin
