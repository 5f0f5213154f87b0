// A whole file as a string.
#pragma once

#include <filesystem>
#include <string>

#include "common/base/status.h"

namespace levin {

// NOT_FOUND when there is none, INVALID_ARGUMENT when it cannot be read or is above `bytes_max`.
Result<std::string> ReadFileText(const std::filesystem::path& path, size_t bytes_max);

}  // namespace levin
