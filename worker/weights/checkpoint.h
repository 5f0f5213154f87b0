// The safetensors files of a model folder as one set of tensors.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "common/base/status.h"
#include "worker/weights/safetensors.h"

namespace levin {

inline constexpr const char* kIndexFile = "model.safetensors.index.json";
inline constexpr const char* kSingleFile = "model.safetensors";

// The folder's index; nullopt: it has none.
Result<std::optional<SafetensorsIndex>> ReadIndex(const std::filesystem::path& model_dir);

// Move only. Headers only: no file stays open.
class Checkpoint final {
 public:
  // With model.safetensors.index.json exactly the files that it names are read, and each must
  // hold exactly the tensors that it says; other files in the folder are none of our business.
  // Without it exactly model.safetensors is. Errors list what is missing.
  static Result<Checkpoint> Open(const std::filesystem::path& model_dir);

  const std::vector<SafetensorsFile>& files() const { return files_; }  // in order of their names
  bool Has(std::string_view name) const { return names_.contains(name); }

 private:
  explicit Checkpoint(std::vector<SafetensorsFile> files);

  std::vector<SafetensorsFile> files_;
  std::unordered_set<std::string_view> names_;  // point into files_' tensors, which never move
};

// "3 of them: a, b, c" or "9000 of them: a, b, c, d, e, ..."
std::string ListText(const std::vector<std::string>& names);

}  // namespace levin
