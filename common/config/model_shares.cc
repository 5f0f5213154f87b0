// How the network is shared out over ranks, and the decays that every rank takes its share of.
#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "common/base/check.h"
#include "common/config/model_config.h"

namespace levin {
namespace {

bool KvHeadsFit(const ModelConfig& config, int ranks) {
  return config.kv_heads % ranks == 0 || ranks % config.kv_heads == 0;
}

bool VocabularyFits(const ModelConfig& config, int ranks) {
  return LocalVocab(config, ranks - 1, ranks).count > 0;
}

bool Fits(const ModelConfig& config, int ranks) {
  return config.heads % ranks == 0 && config.expert_width % ranks == 0 &&
         KvHeadsFit(config, ranks) && VocabularyFits(config, ranks);
}

std::string LegalSizes(const ModelConfig& config) {
  std::string text;
  for (int ranks = 1; ranks <= config.heads; ++ranks) {
    if (!Fits(config, ranks)) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(ranks);
  }
  return text;
}

}  // namespace

int32_t ModelConfig::lightning_layers() const {
  return static_cast<int32_t>(
      std::count(layer_kinds.begin(), layer_kinds.end(), LayerKind::kLightning));
}

int32_t ModelConfig::softmax_layers() const { return layers - lightning_layers(); }

int32_t LocalHeads(const ModelConfig& config, int ranks) { return config.heads / ranks; }

int32_t LocalKvHeads(const ModelConfig& config, int ranks) {
  return std::max(config.kv_heads / ranks, 1);
}

int32_t FirstKvHead(const ModelConfig& config, int rank, int ranks) {
  return static_cast<int32_t>(int64_t{rank} * config.kv_heads / ranks);
}

int32_t LocalExpertWidth(const ModelConfig& config, int ranks) {
  return config.expert_width / ranks;
}

VocabSlice LocalVocab(const ModelConfig& config, int rank, int ranks) {
  const int64_t rows = (int64_t{config.vocab} + ranks - 1) / ranks;
  const int64_t first = std::min<int64_t>(rank * rows, config.vocab);
  return {first, std::min(rows, config.vocab - first)};
}

Status CheckTensorParallel(const ModelConfig& config, int ranks) {
  if (ranks < 1) {
    return InvalidArgument("tensor parallel size is " + std::to_string(ranks) +
                           ", expected at least 1");
  }
  std::string problem;
  if (config.heads % ranks != 0) {
    problem = "does not divide num_attention_heads " + std::to_string(config.heads);
  } else if (config.expert_width % ranks != 0) {
    problem = "does not divide intermediate_size " + std::to_string(config.expert_width);
  } else if (!KvHeadsFit(config, ranks)) {
    problem = "neither divides num_key_value_heads " + std::to_string(config.kv_heads) +
              " nor is a multiple of it";
  } else if (!VocabularyFits(config, ranks)) {
    problem = "leaves a rank without rows of vocab_size " + std::to_string(config.vocab);
  } else {
    return Status::Ok();
  }
  return InvalidArgument("tensor parallel size " + std::to_string(ranks) + " " + problem +
                         "; possible for this model: " + LegalSizes(config));
}

std::vector<double> LightningSlopes(const ModelConfig& config, int layer) {
  CHECK(layer >= 0 && layer < config.layers, layer, config.layers);
  const double factor =
      config.layers == 1 ? 1.0 + 1e-5 : 1.0 - double(layer) / (config.layers - 1) + 1e-5;
  // The heads up to the largest power of two, then every second of twice that power's list.
  const int power = static_cast<int>(std::bit_floor(static_cast<uint32_t>(config.heads)));
  std::vector<double> slopes;
  for (int head = 0; head < config.heads; ++head) {
    const double exponent =
        head < power ? -8.0 * (head + 1) / power : -8.0 * (2 * (head - power) + 1) / (2.0 * power);
    slopes.push_back(std::exp2(exponent) * factor);
  }
  return slopes;
}

}  // namespace levin
