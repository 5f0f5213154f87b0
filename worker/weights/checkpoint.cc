#include "worker/weights/checkpoint.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "common/config/regular_file.h"

namespace levin {
namespace {

constexpr int64_t kIndexBytesMax = int64_t{256} << 20;

using Index = std::map<std::string, std::string>;  // tensor -> file

Result<std::vector<SafetensorsFile>> OpenShards(const std::filesystem::path& model_dir,
                                                const Index& index) {
  std::set<std::string> names;
  for (const auto& [tensor, file] : index) names.insert(file);
  std::vector<SafetensorsFile> files;
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    Result<SafetensorsFile> file = SafetensorsFile::Open(model_dir / name);
    if (file) {
      files.push_back(*std::move(file));
    } else if (file.error().code() == Code::kNotFound) {
      missing.push_back(name);
    } else {
      return Error(std::move(file).error());
    }
  }
  if (missing.empty()) return files;
  return Error(NotFound("'" + model_dir.string() + "' lacks files that its index names, " +
                        ListText(missing)));
}

// The index and the headers must say the same about every tensor.
Status CheckIndex(const Index& index, const std::vector<SafetensorsFile>& files) {
  std::map<std::string, const SafetensorsFile*> by_name;
  for (const SafetensorsFile& file : files) by_name[file.path().filename().string()] = &file;
  std::vector<std::string> missing;
  for (const auto& [tensor, file] : index) {
    if (by_name.at(file)->Find(tensor) == nullptr) missing.push_back(tensor + " in " + file);
  }
  if (!missing.empty()) {
    return NotFound("the index names tensors that are not in their files, " + ListText(missing));
  }
  for (const auto& [name, file] : by_name) {
    for (const StoredTensor& tensor : file->tensors()) {
      const auto entry = index.find(tensor.name);
      if (entry != index.end() && entry->second == name) continue;
      return InvalidArgument(
          "'" + file->path().string() + "' holds tensor '" + tensor.name + "', which the index " +
          (entry == index.end() ? "does not name" : "puts into " + entry->second));
    }
  }
  return Status::Ok();
}

}  // namespace

std::string ListText(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  std::string text = std::to_string(names.size()) + " of them: ";
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) text += (i ? ", " : "") + names[i];
  return names.size() > kShown ? text + ", ..." : text;
}

Checkpoint::Checkpoint(std::vector<SafetensorsFile> files) : files_(std::move(files)) {
  for (const SafetensorsFile& file : files_) {
    for (const StoredTensor& tensor : file.tensors()) names_.insert(tensor.name);
  }
}

Result<std::optional<SafetensorsIndex>> ReadIndex(const std::filesystem::path& model_dir) {
  const std::filesystem::path path = model_dir / kIndexFile;
  const Result<std::string> text = ReadSmallFile(path, kIndexBytesMax);
  if (!text && text.error().code() == Code::kNotFound) return std::nullopt;
  if (!text) return Error(text.error());
  Result<SafetensorsIndex> index = ParseSafetensorsIndex(*text);
  if (!index) return Error(std::move(index).error().Annotate("'" + path.string() + "'"));
  return *std::move(index);
}

Result<Checkpoint> Checkpoint::Open(const std::filesystem::path& model_dir) {
  ASSIGN_OR_RETURN(const std::optional<SafetensorsIndex> index, ReadIndex(model_dir));
  if (index) {
    ASSIGN_OR_RETURN(std::vector<SafetensorsFile> files, OpenShards(model_dir, index->shards));
    RETURN_ERROR_IF(CheckIndex(index->shards, files));
    return Checkpoint(std::move(files));
  }
  Result<SafetensorsFile> only = SafetensorsFile::Open(model_dir / kSingleFile);
  if (!only && only.error().code() == Code::kNotFound) {
    return Error(
        NotFound("'" + model_dir.string() + "' has neither " + kIndexFile + " nor " + kSingleFile));
  }
  if (!only) return Error(std::move(only).error());
  std::vector<SafetensorsFile> files;
  files.push_back(*std::move(only));
  return Checkpoint(std::move(files));
}

}  // namespace levin
