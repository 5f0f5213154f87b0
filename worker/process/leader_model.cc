// Weights, cache and engine, up to the doors open for routers.
#include <xxhash.h>

#include <string>
#include <utility>
#include <vector>

#include "common/log/log.h"
#include "worker/process/host_resources.h"
#include "worker/process/leader.h"
#include "worker/process/rank_model.h"

namespace levin {

OrExit<void> LeaderProcess::LoadModel() {
  if (Status fits = CheckWeightsFit(options_, AvailableBytes()); !fits.ok())
    return ExitWith(ExitCode::kMemory, fits);
  OrExit<ModelWeights> weights = LoadRankWeights(options_, folder_, ProgressInto(state_));
  if (!weights) return tl::unexpected(std::move(weights).error());
  metrics_.device_memory_bytes(MemoryKind::kWeights).Set(static_cast<double>(weights->bytes));
  model_digest_ = weights->digest;
  if (options_.world_size > 1) {
    const Result<std::vector<LoadedFacts>> loaded = board_->AwaitLoaded(kStall);
    if (!loaded) return ExitWith(ExitCode::kGroupEnded, loaded.error());
    for (const LoadedFacts& facts : *loaded) {
      model_digest_ =
          XXH3_64bits_withSeed(&model_digest_, sizeof model_digest_, facts.weights_digest);
    }
  }
  // The same for the same weights, split and quantisation, however the checkpoint spells them.
  Log(LogLevel::kInfo, "weights_loaded",
      {{"ranks", options_.world_size}, {"digest", std::to_string(model_digest_)}});
  state_.phase = StartupPhase::kAllocating;
  const OrExit<CachePlan> plan =
      job_ ? PlanJobCache(options_, *job_, folder_.config, AvailableBytes())
           : PlanCache(options_, folder_.config, AvailableBytes());
  if (!plan) return tl::unexpected(plan.error());
  Log(LogLevel::kInfo, "cache_plan", {{"plan", plan->Text(options_.world_size)}});
  if (OrExit<void> shared = SharePool(*plan); !shared) return shared;

  OrExit<std::unique_ptr<HybridModel>> model =
      BuildModel(options_, folder_, *std::move(weights), *collective_, *steps_,
                 ThreadsPerRank(cores_, options_.world_size));
  if (!model) return tl::unexpected(std::move(model).error());
  model_ = *std::move(model);
  metrics_.device_memory_bytes(MemoryKind::kPool)
      .Set(static_cast<double>(plan->split.bytes_per_rank));
  BuildEngine(*plan);
  state_.phase = StartupPhase::kWarming;
  const Result<StepSpeed> speed = WarmUp(*model_, *steps_);
  if (!speed) return ExitWith(ExitCode::kGroupEnded, speed.error());
  hang_.emplace(std::chrono::microseconds(speed->token_us * steps_->step_tokens_max()),
                speed->pair_ns);
  if (options_.world_size > 1) {
    const Result<int64_t> ready = board_->AwaitReady(kStall);
    if (!ready) return ExitWith(ExitCode::kGroupEnded, ready.error());
  }
  progress_ = &engine_->progress();
  if (!job_) OpenToRouters(*plan);
  state_.phase = StartupPhase::kReady;
  Log(LogLevel::kInfo, "ready",
      {{"rank", 0},
       {"ranks", options_.world_size},
       {"epoch", epoch_},
       {"token_us", speed->token_us}});
  return {};
}

OrExit<void> LeaderProcess::SharePool(const CachePlan& plan) {
  const PoolFacts pool{plan.split.slots, plan.split.blocks};
  steps_ = MakeSchedulerOptions(options_, folder_, pool, epoch_, plan.max_model_len, job_);
  if (options_.world_size == 1) return {};
  const Status sent = group_->SendPool(pool);
  if (!sent.ok()) return ExitWith(ExitCode::kGroupEnded, sent);
  return {};
}

// In serving the routers feed the engine and a meter watches; a job of levin eval takes both
// places.
void LeaderProcess::BuildEngine(const CachePlan& plan) {
  const int ranks = options_.world_size;
  StepObserver* observer = nullptr;
  Outbox* outbox = &*hub_;
  if (job_) {
    feeder_.emplace(*job_, inbox_);
    collector_.emplace(*job_, folder_.config, *collective_, model_->states());
    model_->set_probe(&*collector_);
    observer = &*collector_;
    outbox = &*feeder_;
  } else {
    meter_.emplace(metrics_, *collective_, clock_, plan.geometry.block_tokens);
    observer = &*meter_;
  }
  executor_.emplace(MakePlanLimits(*steps_), *model_, folder_.tokenizer.defined, observer);
  engine_.emplace(EngineOptions{.bytes_per_block = plan.geometry.kv_bytes_per_block * ranks,
                                .bytes_per_slot = plan.geometry.state_bytes_per_slot * ranks},
                  Scheduler(*steps_), *executor_, ranks > 1 ? group_.get() : nullptr, *outbox,
                  inbox_, clock_);
}

void LeaderProcess::OpenToRouters(const CachePlan& plan) {
  const ModelConfig& config = folder_.config;
  const int ranks = options_.world_size;
  engine_service_->SetFacts({.group_id = engine_server_->address(),
                             .tokenizer_hash = folder_.tokenizer.hash,
                             .model_digest = model_digest_,
                             .lightning_layers = config.lightning_layers(),
                             .softmax_layers = config.softmax_layers(),
                             .heads = config.heads,
                             .block_tokens = plan.geometry.block_tokens,
                             .bytes_per_block = plan.geometry.kv_bytes_per_block * ranks,
                             .bytes_per_slot = plan.geometry.state_bytes_per_slot * ranks,
                             .ranks = ranks,
                             .vocab_size = config.vocab,
                             .max_model_len = plan.max_model_len,
                             .max_new_tokens = plan.max_model_len,
                             .max_num_seqs = options_.max_num_seqs});
  metrics_.SetModelInfo(std::to_string(model_digest_), options_.dtype);
  hub_->SetReady();
  engine_server_->SetServing("levin.v1.Engine", true);
}

}  // namespace levin
