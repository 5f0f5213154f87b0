#include "worker/process/rank_model.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "worker/backend/cpu/cpu_backend.h"
#include "worker/process/load_progress.h"
#include "worker/weights/weight_loader.h"

namespace levin {
namespace {

// Test hook: one matrix of the first layer changes its sign, in memory, on this rank alone.
void Corrupt(ModelWeights& weights) {
  const LayerWeights& layer = weights.layers.front();
  const TensorView& matrix = layer.out ? layer.out : layer.o;
  uint16_t* values = matrix.as<uint16_t>();
  for (int64_t i = 0; i < matrix.elements(); ++i) values[i] ^= 0x8000;
}

// One row of `count` tokens from `position` on, in slot 0 and the first blocks.
StepBatch WarmUpBatch(int32_t count, int64_t position, int32_t block_tokens) {
  StepBatch batch;
  batch.tokens.assign(static_cast<size_t>(count), 0);
  batch.row_first = {0, count};
  batch.row_position = {position};
  batch.row_slot = {0};
  batch.row_fresh = {static_cast<uint8_t>(position == 0)};
  batch.row_stepwise = {static_cast<uint8_t>(count == 1 && position > 0)};
  const auto blocks = static_cast<int32_t>((position + count + block_tokens - 1) / block_tokens);
  batch.block_first = {0, blocks};
  for (int32_t block = 0; block < blocks; ++block) batch.block_ids.push_back(block);
  batch.logit_tokens = {count - 1};
  return batch;
}

}  // namespace

Status CheckWeightsFit(const WorkerOptions& options, int64_t available_bytes) {
  int64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(options.model, error)) {
    if (entry.path().extension() == ".safetensors")
      bytes += static_cast<int64_t>(entry.file_size(error));
  }
  if (options.quantization == "experts_int8") bytes /= 2;
  if (available_bytes == 0 || bytes <= available_bytes) return Status::Ok();
  return ResourceExhausted("the weights of '" + options.model + "' take about " +
                           std::to_string(bytes >> 20) + " MiB, but only " +
                           std::to_string(available_bytes >> 20) + " MiB of memory are available");
}

OrExit<ModelWeights> LoadRankWeights(const WorkerOptions& options, const ModelFolder& folder,
                                     std::function<void(int64_t, int64_t)> progress) {
  const SystemClock clock;
  LoadProgress lines(options.rank, clock);
  LoadOptions load;
  load.rank = options.rank;
  load.ranks = options.world_size;
  load.quantize_experts_int8 = options.quantization == "experts_int8";
  load.progress = [&](int64_t done, int64_t total) {
    if (progress) progress(done, total);
    if (const std::optional<std::string> line = lines.Line(done, total))
      std::fprintf(stderr, "%s\n", line->c_str());
  };
  Result<ModelWeights> weights = LoadWeights(options.model, folder.config, load);
  if (!weights) return ExitFor(ExitCode::kModel, std::move(weights).error());
  if (options.corrupt_rank == options.rank) Corrupt(*weights);
  return *std::move(weights);
}

SchedulerOptions MakeSchedulerOptions(const WorkerOptions& options, const ModelFolder& folder,
                                      const PoolFacts& pool, uint64_t epoch, int64_t max_model_len,
                                      const std::optional<EvalJob>& job) {
  SchedulerOptions steps;
  steps.max_num_seqs = options.max_num_seqs;
  steps.slots = pool.slots;
  steps.blocks = pool.blocks;
  steps.tokens_per_step_max = options.max_num_batched_tokens;
  steps.max_model_len = max_model_len;
  steps.vocab_size = folder.config.vocab;
  steps.epoch = epoch;
  if (job) ApplyEvalJob(*job, steps);
  return steps;
}

PlanLimits MakePlanLimits(const SchedulerOptions& options) {
  return {.epoch = options.epoch,
          .slots = options.slots,
          .blocks = options.blocks,
          .block_tokens = options.block_tokens,
          .rows_max = options.rows_max(),
          .tokens_max = options.step_tokens_max(),
          .vocab_size = options.vocab_size};
}

OrExit<std::unique_ptr<HybridModel>> BuildModel(const WorkerOptions& options,
                                                const ModelFolder& folder, ModelWeights weights,
                                                Collective& collective,
                                                const SchedulerOptions& steps, int threads) {
  HybridModelOptions model;
  model.activations = options.dtype == "float32" ? DType::kF32 : DType::kBF16;
  model.slots = static_cast<int32_t>(steps.slots);
  model.blocks = steps.blocks;
  model.tokens_per_step_max = steps.step_tokens_max();
  model.rows_per_step_max = steps.rows_max();
  auto built = HybridModel::Create(folder.config, std::move(weights),
                                   MakeCpuBackend({threads, BestCpuPath()}), collective, model);
  if (!built) return ExitFor(ExitCode::kConfig, std::move(built).error());
  return *std::move(built);
}

Result<int64_t> WarmUp(Network& network, const SchedulerOptions& steps) {
  const int64_t room = steps.blocks * steps.block_tokens;
  const auto count =
      static_cast<int32_t>(std::min<int64_t>({steps.block_tokens, steps.step_tokens_max(), room}));
  std::vector<float> logits(static_cast<size_t>(network.vocab_size()));
  const auto begin = std::chrono::steady_clock::now();
  RETURN_ERROR_IF(network.Run(WarmUpBatch(count, 0, steps.block_tokens), logits));
  const auto chunk = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - begin);
  if (count < room) RETURN_ERROR_IF(network.Run(WarmUpBatch(1, count, steps.block_tokens), logits));
  return std::max<int64_t>(chunk.count() / count, 1);
}

}  // namespace levin
