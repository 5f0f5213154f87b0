// The private folder (mode 0700) of one running command: Unix sockets and option files. Removed at
// the end; what a dead owner left behind is removed at the next start.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace levin {

class RunDirectory final {
 public:
  static Result<RunDirectory> Create();
  RunDirectory(RunDirectory&& other) noexcept : path_(std::move(other.path_)) {
    other.path_.clear();
  }
  RunDirectory& operator=(RunDirectory&&) = delete;
  ~RunDirectory();

  const std::filesystem::path& path() const { return path_; }
  // unix:PATH of a socket `name` in here.
  std::string Socket(const std::string& name) const { return "unix:" + (path_ / name).string(); }
  // Writes a file of mode 0600 with one argument a line; returns its path.
  Result<std::string> WriteOptions(const std::string& name,
                                   const std::vector<std::string>& lines) const;

 private:
  explicit RunDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace levin
