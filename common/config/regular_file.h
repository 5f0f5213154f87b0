// A file that is surely a file: no FIFO that blocks, no device, no folder. Read by offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "common/base/status.h"

namespace levin {

// Which file it is and in what state: differs after an exchange, a truncation or a write.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t size = 0;
  int64_t modified_ns = 0;
  bool operator==(const FileIdentity&) const = default;
};

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
  const FileIdentity& identity() const { return identity_; }  // when it was opened
  int64_t size() const { return identity_.size; }

  // All of out from byte `offset` on, or kDataLoss that names file, offset and cause: a file that
  // shrank meanwhile is an error here and no signal.
  Status Read(int64_t offset, std::span<std::byte> out) const;

  // Asks the system to fetch these bytes meanwhile; a hint that may come to nothing.
  void WillRead(int64_t offset, int64_t bytes) const;

 private:
  RegularFile(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::filesystem::path path_;
  int fd_ = -1;
  FileIdentity identity_;
};

// The whole of a small file; larger than bytes_max is kFailedPrecondition with both numbers.
Result<std::string> ReadSmallFile(const std::filesystem::path& path, int64_t bytes_max);

}  // namespace levin
