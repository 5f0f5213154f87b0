// Numbers with units, as flags spell them.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace levin {

// "1M", "256k" (powers of ten for tokens), "8GiB", "80GB", plain numbers.
Result<int64_t> ParseCount(const std::string& text);
Result<int64_t> ParseBytes(const std::string& text);
// "90" and "90s" are seconds; also "500ms", "5m", "1h".
Result<int64_t> ParseTimeMs(const std::string& text);

}  // namespace levin
