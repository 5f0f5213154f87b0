#include "common/config/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace levin {
namespace {

// One call never asks for more: the kernel would cut it anyway.
constexpr size_t kReadBytesMax = size_t{1} << 30;

std::string SystemWord(int error) { return std::generic_category().message(error); }

std::string Quoted(const std::filesystem::path& path) { return "'" + path.string() + "'"; }

}  // namespace

Result<RegularFile> RegularFile::Open(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a FIFO without a writer must not wait.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    const int error = errno;
    const std::string message = "cannot open " + Quoted(path) + ": " + SystemWord(error);
    if (error == ENOENT || error == ENOTDIR) return Error(NotFound(message));
    return Error(FailedPrecondition(message));
  }
  RegularFile file(path, fd);
  struct stat facts;
  if (::fstat(fd, &facts) != 0) {
    return Error(FailedPrecondition("cannot look at " + Quoted(path) + ": " + SystemWord(errno)));
  }
  if (!S_ISREG(facts.st_mode)) {
    return Error(FailedPrecondition(Quoted(path) + " is not a regular file"));
  }
  file.identity_ = {facts.st_dev, facts.st_ino, facts.st_size,
                    facts.st_mtim.tv_sec * 1'000'000'000 + facts.st_mtim.tv_nsec};
  return file;
}

RegularFile::~RegularFile() {
  if (fd_ >= 0) ::close(fd_);
}

RegularFile::RegularFile(RegularFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      identity_(other.identity_) {}

RegularFile& RegularFile::operator=(RegularFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(identity_, other.identity_);
  return *this;
}

Status RegularFile::Read(int64_t offset, std::span<std::byte> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const size_t want = std::min(out.size() - done, kReadBytesMax);
    const ssize_t got = ::pread(fd_, out.data() + done, want,
                                static_cast<off_t>(offset + static_cast<int64_t>(done)));
    if (got < 0 && errno == EINTR) continue;
    if (got > 0) {
      done += static_cast<size_t>(got);
      continue;
    }
    const std::string cause = got < 0 ? SystemWord(errno) : "the file ends there";
    return DataLoss("cannot read " + Quoted(path_) + " at byte " +
                    std::to_string(offset + static_cast<int64_t>(done)) + ": " + cause +
                    " (expected " + std::to_string(out.size() - done) + " more bytes; it had " +
                    std::to_string(size()) + " when it was opened)");
  }
  return Status::Ok();
}

void RegularFile::WillRead(int64_t offset, int64_t bytes) const {
  ::posix_fadvise(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
}

Result<std::string> ReadSmallFile(const std::filesystem::path& path, int64_t bytes_max) {
  ASSIGN_OR_RETURN(const RegularFile file, RegularFile::Open(path));
  if (file.size() > bytes_max) {
    return Error(FailedPrecondition(Quoted(path) + " has " + std::to_string(file.size()) +
                                    " bytes, expected at most " + std::to_string(bytes_max)));
  }
  std::string text(static_cast<size_t>(file.size()), '\0');
  RETURN_ERROR_IF(file.Read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace levin
