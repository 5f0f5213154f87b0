#include "worker/weights/safetensors.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/check.h"

namespace levin {
namespace {

constexpr int64_t kLengthBytes = 8;

uint64_t LittleEndian(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i)
    value = value << 8 | std::to_integer<uint64_t>(bytes[i - 1]);
  return value;
}

// What people put there instead of weights.
std::string Guess(std::span<const std::byte> first) {
  const std::string_view text(reinterpret_cast<const char*>(first.data()), first.size());
  if (text.starts_with("version ")) return "; this looks like a git-lfs pointer: run git lfs pull";
  if (text.starts_with("<")) return "; this looks like a web page";
  return "";
}

Status Wrong(const RegularFile& file, const std::string& what) {
  return InvalidArgument("'" + file.path().string() + "' " + what);
}

}  // namespace

SafetensorsFile::SafetensorsFile(const RegularFile& file, std::vector<StoredTensor> tensors)
    : path_(file.path()), identity_(file.identity()), tensors_(std::move(tensors)) {
  for (size_t i = 0; i < tensors_.size(); ++i) by_name_.emplace(tensors_[i].name, i);
}

Result<SafetensorsFile> SafetensorsFile::Open(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const RegularFile file, RegularFile::Open(path));
  if (file.size() < kLengthBytes) {
    return Error(Wrong(file, "has " + std::to_string(file.size()) +
                                 " bytes, expected at least the 8 of a header length"));
  }
  std::array<std::byte, kLengthBytes> first;
  RETURN_ERROR_IF(file.Read(0, first));
  const uint64_t claimed = LittleEndian(first);
  const int64_t room = file.size() - kLengthBytes;
  if (claimed > static_cast<uint64_t>(std::min(room, kHeaderBytesMax))) {
    return Error(
        Wrong(file, "claims a header of " + std::to_string(claimed) + " bytes, expected at most " +
                        std::to_string(std::min(room, kHeaderBytesMax)) + " (the file has " +
                        std::to_string(file.size()) + ")" + Guess(first)));
  }
  std::string header(claimed, '\0');
  RETURN_ERROR_IF(file.Read(kLengthBytes, std::as_writable_bytes(std::span(header))));
  Result<std::vector<StoredTensor>> tensors =
      ParseSafetensorsHeader(header, kLengthBytes + static_cast<int64_t>(claimed), file.size());
  if (!tensors) {
    return Error(std::move(tensors).error().Annotate("'" + path.string() + "'"));
  }
  return SafetensorsFile(file, *std::move(tensors));
}

const StoredTensor* SafetensorsFile::Find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

Result<RegularFile> SafetensorsFile::OpenData() const {
  ASSIGN_OR_RETURN(RegularFile file, RegularFile::Open(path_));
  if (file.identity() == identity_) return file;
  return Error(
      DataLoss("'" + path_.string() + "' changed after its header was checked: it has " +
               std::to_string(file.size()) + " bytes, had " + std::to_string(identity_.size) +
               (file.size() == identity_.size ? " too but is another file or was written" : "")));
}

Status SafetensorsFile::ReadFrom(const RegularFile& file, const StoredTensor& tensor,
                                 int64_t byte_offset, std::span<std::byte> out) {
  const int64_t size = static_cast<int64_t>(out.size());
  CHECK(byte_offset >= 0 && size <= tensor.bytes && byte_offset <= tensor.bytes - size, tensor.name,
        byte_offset, size, tensor.bytes);
  Status status = file.Read(tensor.data_begin + byte_offset, out);
  if (!status.ok()) return std::move(status).Annotate("tensor '" + tensor.name + "'");
  return status;
}

Status SafetensorsFile::Read(const StoredTensor& tensor, int64_t byte_offset,
                             std::span<std::byte> out) const {
  ASSIGN_OR_RETURN_STATUS(const RegularFile file, OpenData());
  return ReadFrom(file, tensor, byte_offset, out);
}

}  // namespace levin
