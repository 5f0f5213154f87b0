// A job of levin eval in this process: engine, scheduler, plans and the real network on ranks that
// are threads, with the digest of every step compared as in a group of processes.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "tests/worker/engine/wires.h"
#include "worker/backend/cpu/cpu_backend.h"
#include "worker/comm/local_collective.h"
#include "worker/engine/engine.h"
#include "worker/engine/follower.h"
#include "worker/eval/eval_collector.h"
#include "worker/eval/eval_feeder.h"
#include "worker/model/hybrid_model.h"
#include "worker/weights/weight_loader.h"

namespace levin::testing {

struct JobSetting {
  int ranks = 1;
  DType activations = DType::kF32;
  bool int8 = false;
  CpuOptions cpu = {};
  int32_t slots = 3;
  int64_t blocks = 24;
  int32_t tokens_per_step_max = 512;
  int64_t max_model_len = 1024;
  std::vector<bool> defined = {};  // ids that the tokenizer has; empty: all
};

inline SchedulerOptions JobScheduler(const EvalJob& job, const ModelConfig& config,
                                     const JobSetting& setting) {
  SchedulerOptions options;
  options.max_num_seqs = setting.slots;
  options.slots = setting.slots;
  options.blocks = setting.blocks;
  options.tokens_per_step_max = setting.tokens_per_step_max;
  options.max_model_len = setting.max_model_len;
  options.vocab_size = config.vocab;
  ApplyEvalJob(job, options);
  return options;
}

// One rank as its process builds it.
struct JobRank {
  JobRank(const std::filesystem::path& dir, const ModelConfig& config, const EvalJob& job,
          Collective& collective, const JobSetting& setting) {
    const SchedulerOptions options = JobScheduler(job, config, setting);
    auto weights = LoadWeights(dir, config,
                               {.rank = collective.rank(),
                                .ranks = collective.ranks(),
                                .quantize_experts_int8 = setting.int8});
    CHECK(weights.has_value(), weights.error().message());
    auto built =
        HybridModel::Create(config, *std::move(weights), MakeCpuBackend(setting.cpu), collective,
                            {.activations = setting.activations,
                             .slots = static_cast<int32_t>(options.slots),
                             .blocks = options.blocks,
                             .tokens_per_step_max = options.step_tokens_max(),
                             .rows_per_step_max = options.rows_max()});
    CHECK(built.has_value(), built.error().message());
    model = *std::move(built);
    collector = std::make_unique<EvalCollector>(job, config, collective, model->states());
    model->set_probe(collector.get());
    const PlanLimits limits{.slots = options.slots,
                            .blocks = options.blocks,
                            .rows_max = options.rows_max(),
                            .tokens_max = options.step_tokens_max(),
                            .vocab_size = config.vocab};
    executor = std::make_unique<RankExecutor>(limits, *model, setting.defined, collector.get());
  }

  std::unique_ptr<HybridModel> model;
  std::unique_ptr<EvalCollector> collector;
  std::unique_ptr<RankExecutor> executor;
};

// Runs the job and writes its file.
inline Status RunJob(const std::filesystem::path& dir, const EvalJob& job,
                     const JobSetting& setting) {
  const ModelConfig config = *LoadModelConfig(dir);
  const int ranks = setting.ranks;
  auto collectives = MakeLocalCollectives(ranks);
  std::vector<std::unique_ptr<JobRank>> group;
  std::vector<std::unique_ptr<Wire>> wires;
  for (auto& collective : collectives)
    group.push_back(std::make_unique<JobRank>(dir, config, job, *collective, setting));
  for (int rank = 1; rank < ranks; ++rank) wires.push_back(std::make_unique<Wire>());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < wires.size(); ++i)
    threads.emplace_back([&, i] {
      WireToLeader leader(*wires[i]);
      const Status status = Follower(*group[i + 1]->executor, leader).Run();
      EXPECT_TRUE(status.ok()) << status.message();
    });

  Mailbox<RouterCommand> inbox(128);
  SystemClock clock;
  EvalFeeder feeder(job, inbox);
  WireToFollowers link(wires);
  Engine engine(EngineOptions{}, Scheduler(JobScheduler(job, config, setting)), *group[0]->executor,
                ranks > 1 ? &link : nullptr, feeder, inbox, clock);
  Status status = feeder.Start();
  if (status.ok()) status = engine.Run();
  for (auto& wire : wires) wire->plans.Close();
  for (std::thread& thread : threads) thread.join();
  if (status.ok()) status = feeder.status();
  return status.ok() ? group[0]->collector->Write(feeder.greedy()) : status;
}

}  // namespace levin::testing
