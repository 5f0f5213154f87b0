#include "worker/process/leader_process.h"

#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mailbox.h"
#include "common/log/log.h"
#include "common/metrics/worker_metrics.h"
#include "common/rpc/limits.h"
#include "worker/comm/local_collective.h"
#include "worker/comm/shm_collective.h"
#include "worker/engine/engine.h"
#include "worker/eval/eval_collector.h"
#include "worker/eval/eval_feeder.h"
#include "worker/process/abort_switch.h"
#include "worker/process/cache_plan.h"
#include "worker/process/emergency.h"
#include "worker/process/epoch.h"
#include "worker/process/hang_watch.h"
#include "worker/process/health_server.h"
#include "worker/process/hello.h"
#include "worker/process/host_resources.h"
#include "worker/process/leader_gauges.h"
#include "worker/process/leftover_segments.h"
#include "worker/process/model_folder.h"
#include "worker/process/rank_metrics.h"
#include "worker/process/rank_model.h"
#include "worker/process/startup_state.h"
#include "worker/process/step_meter.h"
#include "worker/process/timed_collective.h"
#include "worker/process/watch.h"
#include "worker/rpc/engine_service.h"
#include "worker/rpc/group_service.h"
#include "worker/rpc/rpc_server.h"

namespace levin {
namespace {

constexpr size_t kInboxCommands = 4096;
constexpr Duration kDrainLimit = std::chrono::seconds(90);
constexpr Duration kLastWords = std::chrono::seconds(1);   // for EpochEnd and Shutdown to leave
constexpr Duration kLeaveLimit = std::chrono::seconds(5);  // after a loss, for the engine to notice
constexpr Duration kStall{std::chrono::milliseconds(kRendezvousStallMs)};

TimePoint In(Duration duration) { return std::chrono::steady_clock::now() + duration; }

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

OrExit<void> LeaderProcess::StartUp() {
  OrExit<ModelFolder> folder = ReadModelFolder(options_);
  if (!folder) return tl::unexpected(std::move(folder).error());
  folder_ = *std::move(folder);
  if (!options_.eval_job.empty()) {
    Result<EvalJob> job = ReadEvalJob(options_.eval_job);
    if (!job) return ExitWith(ExitCode::kConfig, std::move(job).error());
    job_ = *std::move(job);
  }
  const Result<uint64_t> epoch = NextEpoch(options_.epoch_file, clock_.UnixMs());
  if (!epoch) return ExitWith(ExitCode::kConfig, epoch.error());
  epoch_ = *epoch;
  for (const auto step : {&LeaderProcess::OpenDoors, &LeaderProcess::GatherRanks,
                          &LeaderProcess::BuildCollective, &LeaderProcess::LoadModel}) {
    if (OrExit<void> done = (this->*step)(); !done) return done;
  }
  return {};
}

// Ports first: a taken one shows before anything costs time. Handshakes get MODEL_LOADING for now.
OrExit<void> LeaderProcess::OpenDoors() {
  hub_.emplace(HubOptions{.epoch = epoch_, .tokenizer_hash = folder_.tokenizer.hash}, inbox_,
               clock_);
  board_.emplace(MakeHello(options_, folder_), clock_,
                 [this](const RankLoss& loss) { OnLost(loss); });
  engine_service_ = MakeEngineService(*hub_);
  group_ = MakeGroupService(*board_);
  if (options_.metrics_port >= 0) {
    auto health = StartHealthServer(options_.metrics_host, options_.metrics_port,
                                    {[this] { return Health(); }, [this] { return Metrics(); }});
    if (!health) return ExitWith(ExitCode::kPort, std::move(health).error());
    health_ = *std::move(health);
  }
  if (!job_) {
    auto server = StartRpcServer(options_.engine_listen, engine_service_->service());
    if (!server) return ExitWith(ExitCode::kPort, std::move(server).error());
    engine_server_ = *std::move(server);
    emergency_.Owns(engine_server_->address());
  }
  if (options_.world_size > 1) {
    auto server = StartRpcServer(options_.group_listen, group_->service());
    if (!server) return ExitWith(ExitCode::kPort, std::move(server).error());
    group_server_ = *std::move(server);
    emergency_.Owns(group_server_->address());
  }
  auto watch = Watch::Start([this] { OnTick(); }, [this](int count) { OnSignal(count); });
  if (!watch) return ExitWith(ExitCode::kOther, std::move(watch).error());
  watch_ = *std::move(watch);
  return {};
}

OrExit<void> LeaderProcess::GatherRanks() {
  if (options_.world_size == 1) return {};
  for (const Status& status : {board_->AwaitJoined(kStall), board_->Start()}) {
    if (!status.ok()) return ExitWith(ExitCode::kGroupEnded, status);
  }
  return {};
}

OrExit<void> LeaderProcess::BuildCollective() {
  state_.phase = StartupPhase::kLoading;
  if (options_.world_size == 1) {
    collective_ = std::make_unique<TimedCollective>(std::move(MakeLocalCollectives(1).front()));
    return {};
  }
  RemoveLeftoverSegments();
  const std::string name = SegmentName(getpid(), epoch_);
  ShmOptions shm;
  shm.time_limit = std::chrono::milliseconds(kCollectiveLimitMs);
  shm.cores = cores_;
  auto made = ShmCollective::Create(name, options_.world_size, shm);
  if (!made) return ExitFor(ExitCode::kMemory, std::move(made).error());
  abort_.Connect(made->get());
  Status met = group_->SendWelcome(
      {.epoch = epoch_, .group_id = options_.group_listen, .shared_memory_name = name});
  if (met.ok()) met = (*made)->Rendezvous(shm.time_limit);
  collective_ = std::make_unique<TimedCollective>(*std::move(made));
  if (!met.ok()) return ExitWith(ExitCode::kGroupEnded, met);
  return {};
}

OrExit<void> LeaderProcess::LoadModel() {
  if (Status fits = CheckWeightsFit(options_, AvailableBytes()); !fits.ok())
    return ExitWith(ExitCode::kMemory, fits);
  OrExit<ModelWeights> weights =
      LoadRankWeights(options_, folder_, [this](int64_t done, int64_t total) {
        state_.bytes_done = done;
        state_.bytes_total = total;
      });
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
  const Result<int64_t> token_us = WarmUp(*model_, *steps_);
  if (!token_us) return ExitWith(ExitCode::kGroupEnded, token_us.error());
  hang_.emplace(std::chrono::microseconds(*token_us * steps_->step_tokens_max()));
  if (options_.world_size > 1) {
    const Result<int64_t> ready = board_->AwaitReady(kStall);
    if (!ready) return ExitWith(ExitCode::kGroupEnded, ready.error());
  }
  progress_ = &engine_->progress();
  if (!job_) OpenToRouters(*plan);
  state_.phase = StartupPhase::kReady;
  Log(LogLevel::kInfo, "ready",
      {{"rank", 0}, {"ranks", options_.world_size}, {"epoch", epoch_}, {"token_us", *token_us}});
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

void LeaderProcess::SayReady() const {
  std::string line = "levin-worker: rank 0 ready";
  if (engine_server_ != nullptr) line += " engine=" + engine_server_->address();
  if (group_server_ != nullptr) line += " group=" + group_server_->address();
  if (health_ != nullptr)
    line += " metrics=" + options_.metrics_host + ":" + std::to_string(health_->port());
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

Exit LeaderProcess::Serve() {
  const Status status = engine_->Run();
  // A lost rank shows in the engine as an aborted collective or a closed inbox; what was seen first
  // explains more.
  if (const std::optional<RankLoss> loss = board_->loss())
    return {ExitCode::kGroupEnded, loss->status};
  return {status.ok() ? ExitCode::kClean : ExitCode::kGroupEnded, status};
}

Exit LeaderProcess::Evaluate() {
  Status status = feeder_->Start();
  if (!status.ok()) return {ExitCode::kConfig, status};
  const Exit ran = Serve();
  if (ran.code != ExitCode::kClean) return ran;
  if (!feeder_->status().ok()) return {ExitCode::kConfig, feeder_->status()};
  status = collector_->Write(feeder_->greedy());
  return {status.ok() ? ExitCode::kClean : ExitCode::kOther, status};
}

EpochEndFrame LeaderProcess::EndFrame(const Exit& exit) const {
  EpochEndFrame end;
  end.message = exit.status.ok() ? "the group has shut down" : exit.status.message();
  end.last_good_step = engine_ ? engine_->progress().done.load() : 0;
  const std::optional<RankLoss> loss = board_ ? board_->loss() : std::nullopt;
  if (exit.code == ExitCode::kClean) {
    end.reason = "drain";
  } else if (loss) {
    end.reason = loss->reason;
    end.rank = loss->rank;
  } else if (exit.status.reason() == "DIGEST_MISMATCH") {
    end.reason = "digest";
    end.rank = engine_->fault_rank();
  } else {
    end.reason = exit.status.code() == Code::kUnavailable ? "collective" : "other";
  }
  return end;
}

// Last words to routers, then to the ranks: in order when all is well, else their streams break.
Exit LeaderProcess::End(Exit exit) {
  LogExit(options_.rank, exit);
  if (hub_) {
    hub_->EndEpoch(EndFrame(exit));
    hub_->AwaitEnds(In(kLastWords));
  }
  if (board_ && group_ != nullptr) {
    board_->Stop();
    if (exit.code == ExitCode::kClean) {
      group_->Shutdown("drain", In(kLastWords));
    } else {
      abort_.Pull(exit.status.message());
      group_->Break(Unavailable("the leader ended the epoch: " + exit.status.message()));
    }
  }
  watch_.reset();
  health_.reset();  // its pages look at what goes next
  abort_.Connect(nullptr);
  for (std::unique_ptr<RpcServer>* server : {&engine_server_, &group_server_}) {
    if (*server != nullptr) (*server)->Shutdown(In(kLastWords));
  }
  emergency_.RemoveSockets();
  return exit;
}

// ---- on the watch's thread

// Everybody speaks, yet the step does not end: the first rank that has not done it is named, the
// leader itself if all others have.
void LeaderProcess::WatchForHang(const StepProgress& progress) {
  const bool hung = hang_->Hung(progress.begun, progress.done, progress.has_work, clock_.Now());
  if (!board_->all_heard()) return hang_->Excuse(clock_.Now());
  if (!hung) return;
  const uint64_t step = progress.begun;
  const std::vector<RankView> views = board_->views();
  const auto late = std::find_if(views.begin(), views.end(),
                                 [step](const RankView& view) { return view.step_done < step; });
  const int rank = late == views.end() ? 0 : static_cast<int>(late - views.begin()) + 1;
  hung_ = true;
  board_->Lose({rank, "hang",
                Unavailable("rank " + std::to_string(rank) + " did not end step " +
                            std::to_string(step) + " in time")});
}

void LeaderProcess::OnTick() {
  board_->Tick();
  const StepProgress* progress = progress_.load();
  if (progress != nullptr)
    hub_->SetSuspect(!board_->all_heard());  // before, ranks are still to come
  hub_->Tick();
  group_->SendHeartbeat(progress != nullptr ? progress->done.load() : 0, clock_.UnixMs());
  if (progress != nullptr) WatchForHang(*progress);
  if (hub_->higher_epoch() > 0 && !options_.epoch_file.empty()) {
    (void)StoreEpoch(options_.epoch_file, hub_->higher_epoch());
    board_->Lose({-1, "other",
                  Unavailable("a router has seen epoch " + std::to_string(hub_->higher_epoch()))});
  }
  if (drain_by_ && clock_.Now() > *drain_by_) cancelling_ = true;
  if (cancelling_) hub_->CancelAll();
  if (!leave_by_ && board_->loss()) {
    // Weights load without a look at anything else, the engine's loop notices by itself.
    leave_by_ = state_.phase == StartupPhase::kReady ? clock_.Now() + kLeaveLimit : clock_.Now();
  }
  if (leave_by_ && clock_.Now() >= *leave_by_)
    emergency_.Leave({ExitCode::kGroupEnded, board_->loss()->status});
}

void LeaderProcess::OnSignal(int count) {
  if (job_)
    emergency_.Leave({ExitCode::kOther,
                      Status(Code::kCancelled, "stopped by a signal before the job was done")});
  const bool serving = state_.phase == StartupPhase::kReady;
  if (!serving || count >= 3) emergency_.Leave({ExitCode::kClean, Status::Ok()});
  Log(LogLevel::kInfo, "drain", {{"signals", count}});
  draining_ = true;
  engine_server_->SetServing("levin.v1.Engine", false);
  if (!drain_by_) drain_by_ = clock_.Now() + kDrainLimit;
  if (count == 2) {
    cancelling_ = true;
    hub_->CancelAll();
  }
  hub_->StartDrain();
}

// On any thread: the first loss wakes the engine out of whatever it waits for.
void LeaderProcess::OnLost(const RankLoss& loss) {
  Log(LogLevel::kError, "group_lost",
      {{"rank", loss.rank}, {"reason", loss.reason}, {"message", loss.status.message()}});
  abort_.Pull(loss.status.message());
  inbox_.Close();
}

HealthView LeaderProcess::Health() const {
  HealthView view;
  view.phase = draining_ ? "draining" : std::string(Name(state_.phase));
  view.bytes_done = state_.bytes_done;
  view.bytes_total = state_.bytes_total;
  view.live = !hung_;
  const std::optional<RankLoss> loss = board_->loss();
  if (loss) {
    view.why = loss->status.message();
  } else if (!board_->all_heard()) {
    view.why = "a rank was not heard for 3 s";
  }
  view.ready = view.phase == "ready" && view.why.empty();
  return view;
}

std::string LeaderProcess::Metrics() {
  const StepProgress* progress = progress_.load();
  if (progress != nullptr && meter_) {
    LeaderView view;
    view.epoch = epoch_;
    view.steps_done = progress->done;
    view.connected_routers = hub_->connected_routers();
    view.capacity = hub_->capacity();
    view.blocks_used = meter_->blocks_used();
    view.ranks = options_.world_size;
    view.others = board_->views();
    WriteGauges(view, *metrics_.leader);
  }
  WriteProcessGauges(metrics_, state_, draining_);
  return metrics_.Serialize();
}

}  // namespace

Exit RunLeader(const WorkerOptions& options) { return LeaderProcess(options).Run(); }

}  // namespace levin
