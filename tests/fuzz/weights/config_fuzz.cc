// config.json: what is accepted describes a network that can exist, and that every later
// computation of sizes may take as it is.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/config/cache_cost.h"
#include "common/config/model_config.h"
#include "tests/fuzz/require.h"

using levin::testing::Require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto config = levin::ParseModelConfig({reinterpret_cast<const char*>(data), size});
  if (!config) {
    Require(!config.error().message().empty());
    return 0;
  }
  Require(config->layer_kinds.size() == static_cast<size_t>(config->layers));
  Require(config->lightning_layers() + config->softmax_layers() == config->layers);
  Require(config->rotary_dim % 2 == 0 && config->rotary_dim <= config->head_dim);
  Require(config->heads % config->kv_heads == 0);
  Require(config->experts_per_token >= 1 && config->experts_per_token <= config->experts);
  Require(levin::CheckTensorParallel(*config, 1).ok());
  for (int ranks : {1, 2, 3, 8, 64, 1024}) {
    if (!levin::CheckTensorParallel(*config, ranks).ok()) continue;
    const levin::CacheGeometry geometry = levin::MakeCacheGeometry(*config, ranks, 2);
    Require(geometry.state_bytes_per_slot >= 0 && geometry.kv_bytes_per_block >= 0);
    Require(geometry.state_bytes_per_slot + geometry.kv_bytes_per_block > 0);
  }
  return 0;
}
