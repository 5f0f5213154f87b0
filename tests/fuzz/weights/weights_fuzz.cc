// The texts of a model folder: config.json, a safetensors header, the index. The first byte of the
// input chooses the parser. Beyond "no crash": what a header promises must hold.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "common/config/model_config.h"
#include "worker/weights/safetensors.h"

namespace {

constexpr int64_t kDataBegin = 1000;
constexpr int64_t kDataBytes = 64;

void Require(bool holds) {
  if (!holds) std::abort();
}

void Header(std::string_view text) {
  const auto tensors = levin::ParseSafetensorsHeader(text, kDataBegin, kDataBegin + kDataBytes);
  if (!tensors) return;
  int64_t next = kDataBegin;
  for (const levin::StoredTensor& tensor : *tensors) {
    Require(tensor.data_begin == next && tensor.bytes >= 0);
    next += tensor.bytes;
  }
  Require(next == kDataBegin + kDataBytes);
}

void Index(std::string_view text) {
  const auto shards = levin::ParseSafetensorsIndex(text);
  if (!shards) return;
  for (const auto& [tensor, file] : *shards) {
    Require(!file.empty() && file != ".." && file.find('/') == std::string::npos);
  }
}

void Config(std::string_view text) {
  const auto config = levin::ParseModelConfig(text);
  if (!config) return;
  Require(config->layer_kinds.size() == static_cast<size_t>(config->layers));
  Require(config->rotary_dim % 2 == 0 && config->rotary_dim <= config->head_dim);
  Require(config->heads % config->kv_heads == 0);
  Require(levin::CheckTensorParallel(*config, 1).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      Config(text);
      break;
    case 1:
      Header(text);
      break;
    default:
      Index(text);
      break;
  }
  return 0;
}
