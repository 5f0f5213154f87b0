// model.safetensors.index.json: every file name that is accepted stays in the folder.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/fuzz/require.h"
#include "worker/weights/safetensors.h"

using levin::testing::Require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto index = levin::ParseSafetensorsIndex({reinterpret_cast<const char*>(data), size});
  if (!index) {
    Require(!index.error().message().empty());
    return 0;
  }
  Require(!index->shards.empty());
  for (const auto& [tensor, file] : index->shards) {
    Require(!file.empty() && file != "." && file != "..");
    Require(file.find('/') == std::string::npos && file.find('\0') == std::string::npos);
  }
  Require(!index->total_size || *index->total_size >= 0);
  return 0;
}
