#include "worker/process/epoch.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace levin {
namespace {

Result<uint64_t> ReadEpoch(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return 0;
  std::ifstream in(file);
  std::string text;
  in >> text;
  uint64_t epoch = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), epoch);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    return Error(InvalidArgument("epoch file '" + file + "' does not hold a number"));
  }
  return epoch;
}

}  // namespace

Status StoreEpoch(const std::string& file, uint64_t seen) {
  if (file.empty()) return Status::Ok();
  // Beside it and renamed: a crash leaves the old number or the new one.
  const std::string fresh = file + ".new";
  std::ofstream out(fresh, std::ios::trunc);
  out << seen << '\n';
  out.close();
  if (!out || std::rename(fresh.c_str(), file.c_str()) != 0) {
    return Internal("cannot write the epoch file '" + file + "': " + std::strerror(errno));
  }
  return Status::Ok();
}

Result<uint64_t> NextEpoch(const std::string& file, int64_t unix_ms) {
  const auto now = static_cast<uint64_t>(unix_ms);
  if (file.empty()) return now;
  ASSIGN_OR_RETURN(const uint64_t stored, ReadEpoch(file));
  const uint64_t epoch = std::max(now, stored + 1);
  RETURN_ERROR_IF(StoreEpoch(file, epoch));
  return epoch;
}

}  // namespace levin
