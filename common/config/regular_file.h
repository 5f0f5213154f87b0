// A file that is surely a file: no FIFO that blocks, no device, no folder. Read by offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "common/base/status.h"

namespace levin {

// Move only; Read may be called from any thread.
class RegularFile final {
 public:
  // kNotFound when the path leads nowhere, kFailedPrecondition when it cannot be opened or is
  // something else than a regular file. Symbolic links are followed.
  static Result<RegularFile> Open(const std::filesystem::path& path);
  ~RegularFile();
  RegularFile(RegularFile&& other) noexcept;
  RegularFile& operator=(RegularFile&& other) noexcept;

  const std::filesystem::path& path() const { return path_; }
  int64_t size() const { return size_; }  // when it was opened

  // All of out from byte `offset` on, or kDataLoss that names file, offset and cause: a file that
  // shrank meanwhile is an error here and no signal.
  Status Read(int64_t offset, std::span<std::byte> out) const;

 private:
  RegularFile(std::filesystem::path path, int fd, int64_t size)
      : path_(std::move(path)), fd_(fd), size_(size) {}

  std::filesystem::path path_;
  int fd_ = -1;
  int64_t size_ = 0;
};

// The whole of a small file; larger than bytes_max is kFailedPrecondition with both numbers.
Result<std::string> ReadSmallFile(const std::filesystem::path& path, int64_t bytes_max);

}  // namespace levin
