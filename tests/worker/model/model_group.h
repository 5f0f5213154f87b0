// A group of ranks in this process, one thread each, and the few words that drive it: sequences
// are fed in chunks, alone or together, as the engine would.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "worker/backend/cpu/cpu_backend.h"
#include "worker/comm/collective.h"
#include "worker/model/hybrid_model.h"

namespace levin::testing {

struct GroupOptions {
  int ranks = 1;
  DType activations = DType::kF32;
  bool int8 = false;
  CpuPath path = BestCpuPath();
  int threads = 1;
  int32_t slots = 8;
  int64_t blocks = 64;
  int32_t tokens_per_step_max = 2048;
  std::function<void(ModelConfig&)> change_config;
};

// What a sequence holds; its blocks are handed out in an order that no index hides behind.
struct TestSequence {
  int32_t slot = 0;
  std::vector<int32_t> blocks;
  int64_t position = 0;
};

struct Feed {
  TestSequence* sequence;
  std::vector<TokenId> tokens;
  bool stepwise = false;
};

// One step: all rows together; logits of every token are wanted. Advances the sequences.
StepBatch MakeBatch(std::span<const Feed> feeds);

class ModelGroup final {
 public:
  ModelGroup(const std::filesystem::path& dir, const GroupOptions& options);

  const ModelConfig& config() const { return config_; }
  int ranks() const { return static_cast<int>(models_.size()); }
  HybridModel& model(int rank) { return *models_[rank]; }

  // Blocks of its own for `tokens` tokens, in the given slot.
  TestSequence Sequence(int32_t slot, int64_t tokens);
  void ReleaseAll() { blocks_used_ = 0; }

  // Runs the steps on every rank; returns rank 0's logits of all tokens of each step, one behind
  // the other, and expects the same bits from the others.
  std::vector<std::vector<float>> Run(const std::vector<StepBatch>& steps);
  std::vector<float> Run(const StepBatch& step) { return Run(std::vector<StepBatch>{step})[0]; }

  // A fresh sequence in slot 0 in chunks of `chunk` tokens (0: whole); all logits [tokens, vocab].
  // Chunks of 1 use the one-token form.
  std::vector<float> Prefill(std::span<const TokenId> tokens, int64_t chunk);

  // Continues a sequence greedily, one token at a time.
  std::vector<TokenId> Greedy(TestSequence sequence, TokenId first, int count);

  // State of a slot and a layer (of the lightning ones), all heads of all ranks: [heads, d, d].
  std::vector<float> State(int32_t slot, int index) const;

 private:
  ModelConfig config_;
  GroupOptions options_;
  std::vector<std::unique_ptr<Collective>> collectives_;
  std::vector<std::unique_ptr<HybridModel>> models_;
  int64_t blocks_used_ = 0;
};

TokenId ArgMax(std::span<const float> logits);

}  // namespace levin::testing
