#include "cli/run_directory.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace levin {
namespace {

namespace fs = std::filesystem;

constexpr char kPrefix[] = "levin-run-";

// $XDG_RUNTIME_DIR where it is usable, else the folder for temporary files. Short on purpose: the
// path of a Unix socket holds 107 characters.
fs::path Parent() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime != '\0' && std::strlen(runtime) < 60 &&
      access(runtime, W_OK) == 0) {
    return runtime;
  }
  return "/tmp";
}

// levin-run-PID-XXXXXX of a process that is gone, and ours to remove.
bool IsStale(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name.rfind(kPrefix, 0) != 0) return false;
  struct stat info;
  if (lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid())
    return false;
  pid_t pid = 0;
  const char* first = name.data() + std::strlen(kPrefix);
  auto [end, error] = std::from_chars(first, name.data() + name.size(), pid);
  return error == std::errc() && *end == '-' && kill(pid, 0) != 0 && errno == ESRCH;
}

void RemoveStale(const fs::path& parent) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, error)) {
    if (IsStale(entry.path())) fs::remove_all(entry.path(), error);
  }
}

}  // namespace

Result<RunDirectory> RunDirectory::Create() {
  RemoveStale(Parent());
  std::string path = (Parent() / (kPrefix + std::to_string(getpid()) + "-XXXXXX")).string();
  if (mkdtemp(path.data()) == nullptr) {
    return Error(Internal("cannot make the folder '" + path + "': " + std::strerror(errno)));
  }
  return RunDirectory(path);
}

RunDirectory::~RunDirectory() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

Result<std::string> RunDirectory::WriteOptions(const std::string& name,
                                               const std::vector<std::string>& lines) const {
  const std::string path = (path_ / name).string();
  std::string text;
  for (const std::string& line : lines) {
    if (line.find('\n') != std::string::npos) {
      return Error(
          InvalidArgument("an option holds a line feed: '" + line.substr(0, line.find('=')) + "'"));
    }
    text += line + '\n';
  }
  const int fd = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  const bool written =
      fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int saved = errno;
  if (fd >= 0) close(fd);
  if (!written) return Error(Internal("cannot write '" + path + "': " + std::strerror(saved)));
  return path;
}

}  // namespace levin
