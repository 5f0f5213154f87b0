// safetensors files, which come from strangers: 8 bytes of header length, a JSON header, then the
// data. Read with pread (a map of a truncated file kills the process), written whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/config/regular_file.h"
#include "worker/tensor/tensor.h"

namespace levin {

struct StoredTensor {
  std::string name;
  std::string dtype;           // as written: "BF16", "F8_E4M3", ...
  std::vector<int64_t> shape;  // {} is a scalar
  int64_t data_begin = 0;      // absolute, in the file
  int64_t bytes = 0;           // = elements * width
};

// "[4096, 1024]"
std::string ShapeText(std::span<const int64_t> shape);

// A file whose header was checked: every range lies in the file, ranges neither overlap nor leave
// gaps and agree with dtype and shape. Keeps no descriptor: models have hundreds of files.
class SafetensorsFile final {
 public:
  static constexpr int64_t kHeaderBytesMax = 100'000'000;  // as the reference implementation

  // Errors name the file and, where there is one, the tensor.
  static Result<SafetensorsFile> Open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }  // in file order
  const StoredTensor* Find(std::string_view name) const;                 // null: not here

  // Opens the file for reading. kDataLoss when it is no longer the one whose header was checked:
  // exchanged, cut or written to.
  Result<RegularFile> OpenData() const;

  // out.size() bytes from byte_offset of the tensor's data on; the range must lie in the tensor.
  // kDataLoss with file, offset and the system's word when the file gives less.
  static Status ReadFrom(const RegularFile& file, const StoredTensor& tensor, int64_t byte_offset,
                         std::span<std::byte> out);
  // The same for one piece: opens the file and closes it again.
  Status Read(const StoredTensor& tensor, int64_t byte_offset, std::span<std::byte> out) const;

 private:
  SafetensorsFile(const RegularFile& file, std::vector<StoredTensor> tensors);

  std::filesystem::path path_;
  FileIdentity identity_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, size_t, std::less<>> by_name_;
};

// The header alone: `header` is the JSON, data begins at data_begin and the file has file_bytes.
// The parser behind Open; pure. Tensors come back in order of their offsets.
Result<std::vector<StoredTensor>> ParseSafetensorsHeader(std::string_view header,
                                                         int64_t data_begin, int64_t file_bytes);

struct SafetensorsIndex {
  std::map<std::string, std::string> shards;  // tensor -> file
  std::optional<int64_t> total_size;          // metadata.total_size; bytes of all tensors
};

// From the text of model.safetensors.index.json. Shard names must be plain file names. A total_size
// that is no integer from 0 on counts as absent: nothing depends on it.
Result<SafetensorsIndex> ParseSafetensorsIndex(std::string_view text);

struct NamedTensor {
  std::string name;
  TensorView tensor;
};

// Writes the whole file beside `path` and renames it, so that no reader sees half of one. Names
// must differ. Ranks 1 to 4 (kMaxRank).
Status WriteSafetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

}  // namespace levin
