// SHA-256 (FIPS 180-4), to tell known files from unknown ones.
#pragma once

#include <string>
#include <string_view>

namespace levin {

std::string Sha256Hex(std::string_view bytes);

}  // namespace levin
