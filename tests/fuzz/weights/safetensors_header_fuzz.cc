// A safetensors file as text of its header: what a checked header promises must hold. The first
// byte chooses how much data the file has.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "tests/fuzz/require.h"
#include "worker/weights/safetensors.h"

using levin::testing::Require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kDataBegin = 1000;
  constexpr int64_t kDataBytes[] = {0, 4, 64, int64_t{5} << 30};
  if (size == 0) return 0;
  const std::string_view header(reinterpret_cast<const char*>(data) + 1, size - 1);
  const int64_t end = kDataBegin + kDataBytes[data[0] % 4];
  const auto tensors = levin::ParseSafetensorsHeader(header, kDataBegin, end);
  if (!tensors) {
    Require(!tensors.error().message().empty());
    return 0;
  }
  int64_t next = kDataBegin;
  std::set<std::string> names;
  for (const levin::StoredTensor& tensor : *tensors) {
    Require(tensor.data_begin == next && tensor.bytes >= 0 && tensor.bytes <= end - next);
    int64_t elements = 1;
    for (int64_t dim : tensor.shape) Require(!__builtin_mul_overflow(elements, dim, &elements));
    Require(elements == 0 ? tensor.bytes == 0 : tensor.bytes % elements == 0);
    Require(names.insert(tensor.name).second);
    next += tensor.bytes;
  }
  Require(next == end);
  return 0;
}
