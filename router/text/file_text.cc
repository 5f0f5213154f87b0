#include "router/text/file_text.h"

#include <fstream>

namespace levin {

Result<std::string> ReadFileText(const std::filesystem::path& path, size_t bytes_max) {
  std::error_code failed;
  const auto bytes = std::filesystem::file_size(path, failed);
  if (failed == std::errc::no_such_file_or_directory)
    return Error(NotFound(path.string() + " does not exist"));
  if (failed) return Error(InvalidArgument(path.string() + " cannot be read: " + failed.message()));
  if (bytes > bytes_max) {
    return Error(InvalidArgument(path.string() + " has " + std::to_string(bytes) +
                                 " bytes, expected at most " + std::to_string(bytes_max)));
  }
  std::string text(bytes, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(bytes));
  if (!in || static_cast<uintmax_t>(in.gcount()) != bytes) {
    return Error(InvalidArgument(path.string() + " cannot be read"));
  }
  return text;
}

}  // namespace levin
