#include "tests/worker/model/model_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "common/base/check.h"
#include "worker/comm/local_collective.h"
#include "worker/weights/weight_loader.h"

namespace levin::testing {
namespace {

void OnAllRanks(int ranks, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int r = 1; r < ranks; ++r) threads.emplace_back(body, r);
  body(0);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

StepBatch MakeBatch(std::span<const Feed> feeds) {
  StepBatch batch;
  batch.row_first.push_back(0);
  batch.block_first.push_back(0);
  for (const Feed& feed : feeds) {
    TestSequence& s = *feed.sequence;
    batch.tokens.insert(batch.tokens.end(), feed.tokens.begin(), feed.tokens.end());
    batch.row_first.push_back(batch.token_count());
    batch.row_position.push_back(s.position);
    batch.row_slot.push_back(s.slot);
    batch.row_fresh.push_back(s.position == 0);
    batch.row_stepwise.push_back(feed.stepwise);
    batch.block_ids.insert(batch.block_ids.end(), s.blocks.begin(), s.blocks.end());
    batch.block_first.push_back(static_cast<int32_t>(batch.block_ids.size()));
    s.position += static_cast<int64_t>(feed.tokens.size());
  }
  for (int32_t t = 0; t < batch.token_count(); ++t) batch.logit_tokens.push_back(t);
  return batch;
}

ModelGroup::ModelGroup(const std::filesystem::path& dir, const GroupOptions& options)
    : options_(options), collectives_(MakeLocalCollectives(options.ranks)) {
  Result<ModelConfig> config = LoadModelConfig(dir);
  CHECK(config.has_value(), config.error().message());
  config_ = *config;
  if (options.change_config) options.change_config(config_);
  for (int r = 0; r < options.ranks; ++r) {
    Result<ModelWeights> weights = LoadWeights(dir, config_, {r, options.ranks, options.int8, {}});
    CHECK(weights.has_value(), weights.error().message());
    HybridModelOptions model_options;
    model_options.activations = options.activations;
    model_options.slots = options.slots;
    model_options.blocks = options.blocks;
    model_options.tokens_per_step_max = options.tokens_per_step_max;
    model_options.rows_per_step_max = 100;  // longer steps take their logits in pieces
    auto model = HybridModel::Create(config_, *std::move(weights),
                                     MakeCpuBackend({options.threads, options.path}),
                                     *collectives_[r], model_options);
    CHECK(model.has_value(), model.error().message());
    models_.push_back(*std::move(model));
  }
}

TestSequence ModelGroup::Sequence(int32_t slot, int64_t tokens) {
  TestSequence sequence{slot, {}, 0};
  for (int64_t at = 0; at < tokens; at += kKvBlockTokens) {
    CHECK_LT(blocks_used_, options_.blocks);
    // 29 is prime: every block once, neighbours far apart.
    sequence.blocks.push_back(static_cast<int32_t>(blocks_used_++ * 29 % options_.blocks));
  }
  return sequence;
}

std::vector<std::vector<float>> ModelGroup::Run(const std::vector<StepBatch>& steps) {
  std::vector<std::vector<std::vector<float>>> all(ranks());
  OnAllRanks(ranks(), [&](int rank) {
    for (const StepBatch& step : steps) {
      std::vector<float> logits(step.logit_tokens.size() * config_.vocab);
      const Status status = model(rank).Run(step, logits);
      CHECK(status.ok(), status.message());
      all[rank].push_back(std::move(logits));
    }
  });
  for (int r = 1; r < ranks(); ++r) {
    for (size_t i = 0; i < steps.size(); ++i) {
      EXPECT_EQ(0, std::memcmp(all[r][i].data(), all[0][i].data(), all[0][i].size() * 4))
          << "rank " << r << " has other logits than rank 0 in step " << i;
    }
  }
  return all[0];
}

std::vector<float> ModelGroup::Prefill(std::span<const TokenId> tokens, int64_t chunk) {
  ReleaseAll();
  TestSequence sequence = Sequence(0, static_cast<int64_t>(tokens.size()));
  const bool stepwise = chunk == 1;
  if (chunk == 0) chunk = static_cast<int64_t>(tokens.size());
  std::vector<StepBatch> steps;
  for (size_t at = 0; at < tokens.size(); at += chunk) {
    const auto piece = tokens.subspan(at, std::min<size_t>(chunk, tokens.size() - at));
    steps.push_back(
        MakeBatch(std::vector<Feed>{{&sequence, {piece.begin(), piece.end()}, stepwise}}));
  }
  std::vector<float> logits;
  for (const auto& part : Run(steps)) logits.insert(logits.end(), part.begin(), part.end());
  return logits;
}

std::vector<TokenId> ModelGroup::Greedy(TestSequence sequence, TokenId first, int count) {
  std::vector<TokenId> tokens = {first};
  while (static_cast<int>(tokens.size()) < count) {
    tokens.push_back(ArgMax(Run(MakeBatch(std::vector<Feed>{{&sequence, {tokens.back()}, true}}))));
  }
  return tokens;
}

std::vector<float> ModelGroup::State(int32_t slot, int index) const {
  std::vector<float> state;
  for (const auto& model : models_) {
    const TensorView all = model->states();
    const int64_t layer_elements = all.shape[2] * all.shape[3];
    const float* from = all.as<float>() + (slot * all.shape[1] + index) * layer_elements;
    state.insert(state.end(), from, from + layer_elements);
  }
  return state;
}

TokenId ArgMax(std::span<const float> logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace levin::testing
