// Where known values lie. Ours are in tests/golden; LEVIN_GOLDEN_DIR adds a folder of the same
// form; the vendor's own files are never in the repository and are looked for in LEVIN_GOLDEN_DIR,
// then beside the checkout.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace levin::testing {

// Every existing folder called `name` ("network", "chat", ...): all of them are to be run.
inline std::vector<std::filesystem::path> GoldenDirs(std::string_view name) {
  namespace fs = std::filesystem;
  std::vector<fs::path> dirs;
  std::vector<fs::path> roots = {fs::path(LEVIN_SOURCE_DIR) / "tests/golden"};
  if (const char* extra = std::getenv("LEVIN_GOLDEN_DIR")) roots.emplace_back(extra);
  for (const fs::path& root : roots) {
    std::error_code ignored;
    if (fs::exists(root / name, ignored)) dirs.push_back(root / name);
  }
  return dirs;
}

// The vendor's file, or "" when this machine has none (the caller says loudly what it skips).
inline std::filesystem::path VendorFile(std::string_view name) {
  namespace fs = std::filesystem;
  std::vector<fs::path> roots;
  if (const char* extra = std::getenv("LEVIN_GOLDEN_DIR")) roots.emplace_back(extra);
  roots.push_back(fs::path(LEVIN_SOURCE_DIR) / "../shared/golden");
  for (const fs::path& root : roots) {
    std::error_code ignored;
    if (fs::exists(root / name, ignored)) return root / name;
  }
  return {};
}

}  // namespace levin::testing
