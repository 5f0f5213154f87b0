// Rank 0's process: it gathers the ranks, loads its shard, then runs the engine for the routers or
// a job of levin eval. One idea a file: leader_start, leader_model, leader_run, leader_watch,
// leader_pages.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/mailbox.h"
#include "common/config/options.h"
#include "common/log/log.h"
#include "common/metrics/worker_metrics.h"
#include "worker/engine/engine.h"
#include "worker/eval/eval_collector.h"
#include "worker/eval/eval_feeder.h"
#include "worker/model/hybrid_model.h"
#include "worker/process/abort_switch.h"
#include "worker/process/cache_plan.h"
#include "worker/process/emergency.h"
#include "worker/process/hang_watch.h"
#include "worker/process/host_resources.h"
#include "worker/process/rank_metrics.h"
#include "worker/process/rank_start.h"
#include "worker/process/step_meter.h"
#include "worker/process/timed_collective.h"
#include "worker/rpc/engine_service.h"
#include "worker/rpc/group_service.h"
#include "worker/rpc/rpc_server.h"

namespace levin {

class LeaderProcess final {
 public:
  explicit LeaderProcess(const WorkerOptions& options)
      : options_(options),
        cores_(options.cpu_threads > 0 ? options.cpu_threads : UsableCores()),
        emergency_(options.rank),
        metrics_(MetricsOptions(options)),
        inbox_(kInboxCommands) {
    CountLogWith([this](LogLevel level) { CountLog(metrics_, level); });
  }
  ~LeaderProcess() { CountLogWith(nullptr); }

  Exit Run() {
    OrExit<void> started = StartUp();
    if (!started) return End(std::move(started).error());
    SayReady();
    return End(job_ ? Evaluate() : Serve());
  }

 private:
  static constexpr size_t kInboxCommands = 4096;

  OrExit<void> StartUp();
  OrExit<void> OpenDoors();
  OrExit<void> GatherRanks();
  OrExit<void> BuildCollective();
  OrExit<void> LoadModel();
  OrExit<void> SharePool(const CachePlan& plan);
  void BuildEngine(const CachePlan& plan);
  void OpenToRouters(const CachePlan& plan);
  void SayReady() const;
  Exit Serve();
  Exit Evaluate();
  Exit End(Exit exit);
  EpochEndFrame EndFrame(const Exit& exit) const;

  void OnTick();
  void WatchForHang(const StepProgress& progress);
  void OnSignal(int count);
  void OnLost(const RankLoss& loss);
  HealthView Health() const;
  std::string Metrics();

  const WorkerOptions options_;
  const int cores_;
  SystemClock clock_;
  StartupState state_;
  Emergency emergency_;
  AbortSwitch abort_;
  WorkerMetrics metrics_;
  Mailbox<RouterCommand> inbox_;

  ModelFolder folder_;
  std::optional<EvalJob> job_;
  uint64_t epoch_ = 0;
  std::optional<SessionHub> hub_;
  std::optional<RankBoard> board_;
  std::unique_ptr<EngineService> engine_service_;
  std::unique_ptr<GroupService> group_;
  std::unique_ptr<RpcServer> engine_server_, group_server_;
  std::unique_ptr<HttpServer> health_;

  std::unique_ptr<TimedCollective> collective_;
  std::unique_ptr<HybridModel> model_;
  uint64_t model_digest_ = 0;
  std::optional<SchedulerOptions> steps_;
  std::optional<StepMeter> meter_;
  std::optional<EvalFeeder> feeder_;
  std::optional<EvalCollector> collector_;
  std::optional<RankExecutor> executor_;
  std::optional<Engine> engine_;

  // What the watch looks at while the others are at work.
  std::atomic<const StepProgress*> progress_{nullptr};
  std::atomic<bool> draining_{false};
  std::atomic<bool> hung_{false};
  std::optional<HangWatch> hang_;      // set before progress_
  std::optional<TimePoint> drain_by_;  // watch only
  std::optional<TimePoint> leave_by_;  // watch only
  bool cancelling_ = false;            // watch only
  std::unique_ptr<Watch> watch_;       // last: its thread uses all of the above
};

}  // namespace levin
