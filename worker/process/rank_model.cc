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

// How far into a prompt the warm-up looks.
constexpr int64_t kFarTokens = 4096;

// One row of `count` tokens from `position` on, in slot 0; a pool of fewer blocks lends them again.
StepBatch WarmUpBatch(int32_t count, int64_t position, const SchedulerOptions& steps) {
  StepBatch batch;
  batch.tokens.assign(static_cast<size_t>(count), 0);
  batch.row_first = {0, count};
  batch.row_position = {position};
  batch.row_slot = {0};
  batch.row_fresh = {static_cast<uint8_t>(position == 0)};
  batch.row_stepwise = {static_cast<uint8_t>(count == 1 && position > 0)};
  const auto blocks =
      static_cast<int32_t>((position + count + steps.block_tokens - 1) / steps.block_tokens);
  batch.block_first = {0, blocks};
  for (int32_t block = 0; block < blocks; ++block)
    batch.block_ids.push_back(static_cast<int32_t>(block % steps.blocks));
  batch.logit_tokens = {count - 1};
  return batch;
}

Result<double> RunTimed(Network& network, const StepBatch& batch) {
  std::vector<float> logits(static_cast<size_t>(network.vocab_size()));
  const auto begin = std::chrono::steady_clock::now();
  RETURN_ERROR_IF(network.Run(batch, logits));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return took.count();
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
  const CpuOptions cpu{threads, BestCpuPath(), options.batch_invariant.value_or(false)};
  auto built = HybridModel::Create(folder.config, std::move(weights), MakeCpuBackend(cpu),
                                   collective, model);
  if (!built) return ExitFor(ExitCode::kConfig, std::move(built).error());
  return *std::move(built);
}

Result<StepSpeed> WarmUp(Network& network, const SchedulerOptions& steps) {
  const int64_t room = steps.blocks * steps.block_tokens;
  const auto count =
      static_cast<int32_t>(std::min<int64_t>({steps.block_tokens, steps.step_tokens_max(), room}));
  ASSIGN_OR_RETURN(const double first, RunTimed(network, WarmUpBatch(count, 0, steps)));
  ASSIGN_OR_RETURN([[maybe_unused]] const double one,
                   RunTimed(network, WarmUpBatch(1, count, steps)));
  // The first chunk also touched every page for the first time.
  ASSIGN_OR_RETURN(const double near, RunTimed(network, WarmUpBatch(count, 0, steps)));
  ASSIGN_OR_RETURN(const double far, RunTimed(network, WarmUpBatch(count, kFarTokens, steps)));
  StepSpeed speed;
  speed.token_us = std::max<int64_t>(static_cast<int64_t>(first / count * 1e6), 1);
  speed.pair_ns = std::max((far - near) / static_cast<double>(count * kFarTokens) * 1e9, 1.0);
  return speed;
}

}  // namespace levin
