#pragma once

namespace levin {
inline constexpr char kVersion[] = "0.1.0";
}  // namespace levin
