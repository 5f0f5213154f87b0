#include "worker/process/follower_process.h"

#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/log/log.h"
#include "common/metrics/worker_metrics.h"
#include "common/rpc/limits.h"
#include "worker/comm/shm_collective.h"
#include "worker/engine/follower.h"
#include "worker/eval/eval_collector.h"
#include "worker/process/abort_switch.h"
#include "worker/process/emergency.h"
#include "worker/process/hello.h"
#include "worker/process/host_resources.h"
#include "worker/process/rank_metrics.h"
#include "worker/process/rank_model.h"
#include "worker/process/rank_start.h"
#include "worker/process/step_meter.h"
#include "worker/process/timed_collective.h"
#include "worker/rpc/group_client.h"

namespace levin {
namespace {

class FollowerProcess final {
 public:
  explicit FollowerProcess(const WorkerOptions& options)
      : options_(options),
        cores_(options.cpu_threads > 0 ? options.cpu_threads : UsableCores()),
        emergency_(options.rank),
        metrics_(MetricsOptions(options)),
        leader_(clock_, [this](const Status& why) { OnLost(why); }) {
    CountLogWith([this](LogLevel level) { CountLog(metrics_, level); });
  }
  ~FollowerProcess() { CountLogWith(nullptr); }

  Exit Run() {
    OrExit<void> started = StartUp();
    return End(started ? Follow() : std::move(started).error());
  }

 private:
  OrExit<void> StartUp();
  OrExit<void> OpenDoors();
  OrExit<void> Join();
  OrExit<void> LoadModel();
  OrExit<void> WarmAndReport();
  Exit Follow();
  Exit End(Exit exit);
  Exit LeaderExit(const Status& status) const;

  void OnTick();
  void OnSignal(int count);
  void OnLost(const Status& why);
  HealthView Health() const;
  std::string Metrics();

  const WorkerOptions options_;
  const int cores_;
  SystemClock clock_;
  StartupState state_;
  Emergency emergency_;
  AbortSwitch abort_;
  WorkerMetrics metrics_;
  LeaderBoard leader_;

  ModelFolder folder_;
  std::optional<EvalJob> job_;
  WelcomeFacts welcome_;
  std::unique_ptr<GroupClient> client_;
  std::unique_ptr<HttpServer> health_;
  std::unique_ptr<TimedCollective> collective_;
  std::unique_ptr<HybridModel> model_;
  SchedulerOptions steps_;
  std::optional<StepMeter> meter_;
  std::optional<EvalCollector> collector_;
  std::optional<RankExecutor> executor_;
  std::optional<Follower> follower_;

  std::atomic<GroupClient*> speaker_{nullptr};  // the watch's way to send heartbeats
  std::atomic<const StepProgress*> progress_{nullptr};
  std::optional<TimePoint> leave_by_;  // watch only
  std::unique_ptr<Watch> watch_;       // last: its thread uses all of the above
};

OrExit<void> FollowerProcess::StartUp() {
  OrExit<RankInput> input = ReadRankInput(options_);
  if (!input) return tl::unexpected(std::move(input).error());
  folder_ = std::move(input->folder);
  job_ = std::move(input->job);
  return InOrder(*this, {&FollowerProcess::OpenDoors, &FollowerProcess::Join,
                         &FollowerProcess::LoadModel, &FollowerProcess::WarmAndReport});
}

OrExit<void> FollowerProcess::OpenDoors() {
  auto health = OpenHealth(options_, {[this] { return Health(); }, [this] { return Metrics(); }});
  if (!health) return tl::unexpected(std::move(health).error());
  health_ = *std::move(health);
  auto watch = StartWatch([this] { OnTick(); }, [this](int count) { OnSignal(count); });
  if (!watch) return tl::unexpected(std::move(watch).error());
  watch_ = *std::move(watch);
  return {};
}

// What the leader refuses (another world size, another configuration) is ours to change: kConfig.
Exit FollowerProcess::LeaderExit(const Status& status) const {
  const bool refused =
      status.code() == Code::kFailedPrecondition || status.code() == Code::kAlreadyExists;
  return {refused ? ExitCode::kConfig : ExitCode::kGroupEnded, status};
}

OrExit<void> FollowerProcess::Join() {
  auto client = JoinGroup(options_.leader, MakeHello(options_, folder_), leader_, kStall);
  if (!client) return ExitWith(ExitCode::kGroupEnded, std::move(client).error());
  client_ = *std::move(client);
  speaker_ = client_.get();
  Result<WelcomeFacts> welcome = leader_.AwaitWelcome(kStall);
  if (!welcome) return tl::unexpected(LeaderExit(welcome.error()));
  welcome_ = *std::move(welcome);

  state_.phase = StartupPhase::kLoading;
  ShmOptions shm;
  shm.time_limit = std::chrono::milliseconds(kCollectiveLimitMs);
  shm.cores = cores_;
  auto opened =
      ShmCollective::Open(welcome_.shared_memory_name, options_.rank, options_.world_size, shm);
  if (!opened) return ExitWith(ExitCode::kGroupEnded, std::move(opened).error());
  abort_.Connect(opened->get());
  const Status met = (*opened)->Rendezvous(shm.time_limit);
  collective_ = std::make_unique<TimedCollective>(*std::move(opened));
  if (!met.ok()) return ExitWith(ExitCode::kGroupEnded, met);
  return {};
}

OrExit<void> FollowerProcess::LoadModel() {
  OrExit<ModelWeights> weights = LoadRankWeights(options_, folder_, ProgressInto(state_));
  if (!weights) return tl::unexpected(std::move(weights).error());
  client_->SendLoaded({.free_bytes = AvailableBytes(), .weights_digest = weights->digest});
  metrics_.device_memory_bytes(MemoryKind::kWeights).Set(static_cast<double>(weights->bytes));
  state_.phase = StartupPhase::kAllocating;
  const Result<PoolFacts> pool = leader_.AwaitPool(kStall);
  if (!pool) return tl::unexpected(LeaderExit(pool.error()));
  steps_ = MakeSchedulerOptions(options_, folder_, *pool, welcome_.epoch, 1, job_);
  OrExit<std::unique_ptr<HybridModel>> model =
      BuildModel(options_, folder_, *std::move(weights), *collective_, steps_,
                 ThreadsPerRank(cores_, options_.world_size));
  if (!model) return tl::unexpected(std::move(model).error());
  model_ = *std::move(model);
  metrics_.device_memory_bytes(MemoryKind::kPool)
      .Set(static_cast<double>(model_->states().bytes() + model_->kv().bytes()));
  return {};
}

OrExit<void> FollowerProcess::WarmAndReport() {
  StepObserver* observer = nullptr;
  if (job_) {
    collector_.emplace(*job_, folder_.config, *collective_, model_->states());
    model_->set_probe(&*collector_);
    observer = &*collector_;
  } else {
    meter_.emplace(metrics_, *collective_, clock_, steps_.block_tokens);
    observer = &*meter_;
  }
  executor_.emplace(MakePlanLimits(steps_), *model_, folder_.tokenizer.defined, observer);
  state_.phase = StartupPhase::kWarming;
  const Result<StepSpeed> speed = WarmUp(*model_, steps_);
  if (!speed) return ExitWith(ExitCode::kGroupEnded, speed.error());
  follower_.emplace(*executor_, *client_);
  progress_ = &follower_->progress();
  client_->SendReady(speed->token_us);
  state_.phase = StartupPhase::kReady;
  return {};
}

Exit FollowerProcess::Follow() {
  std::string line = "levin-worker: rank " + std::to_string(options_.rank) + " ready";
  line += MetricsAddress(options_, health_.get());
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
  Log(LogLevel::kInfo, "ready", {{"rank", options_.rank}, {"epoch", welcome_.epoch}});
  const Status status = follower_->Run();
  return {status.ok() ? ExitCode::kClean : ExitCode::kGroupEnded, status};
}

Exit FollowerProcess::End(Exit exit) {
  LogExit(options_.rank, exit);
  if (client_ != nullptr && exit.code != ExitCode::kClean) {
    const StepProgress* progress = progress_.load();
    client_->SendFault(progress != nullptr ? progress->begun.load() : 0,
                       std::string(Name(state_.phase)), exit.status);
  }
  if (client_ != nullptr) client_->Close(In(kLastWords));
  watch_.reset();
  health_.reset();  // its pages look at what goes next
  abort_.Connect(nullptr);
  client_.reset();
  return exit;
}

// ---- on the watch's thread

void FollowerProcess::OnTick() {
  leader_.Tick();
  if (GroupClient* speaker = speaker_.load()) {
    const StepProgress* progress = progress_.load();
    speaker->SendHeartbeat(progress != nullptr ? progress->begun.load() : 0,
                           progress != nullptr ? progress->done.load() : 0);
    if (state_.phase == StartupPhase::kLoading) {
      speaker->SendProgress(static_cast<uint64_t>(state_.bytes_done),
                            static_cast<uint64_t>(state_.bytes_total));
    }
  }
  const std::optional<Status> broken = leader_.broken();
  if (!leave_by_ && broken) {
    // Weights load without a look at anything else, the step loop notices by itself.
    leave_by_ = state_.phase == StartupPhase::kLoading ? clock_.Now() : clock_.Now() + kLeaveLimit;
  }
  if (leave_by_ && clock_.Now() >= *leave_by_) emergency_.Leave(LeaderExit(*broken));
}

// Once it belongs to a group, the leader says when to go; a broken stream is the other way out.
void FollowerProcess::OnSignal(int count) {
  if (state_.phase == StartupPhase::kStarting || count >= 3)
    emergency_.Leave({ExitCode::kClean, Status::Ok()});
}

void FollowerProcess::OnLost(const Status& why) { abort_.Pull(why.message()); }

HealthView FollowerProcess::Health() const {
  HealthView view;
  view.phase = Name(state_.phase);
  view.bytes_done = state_.bytes_done;
  view.bytes_total = state_.bytes_total;
  if (!leader_.heard()) view.why = "the leader was not heard for 3 s";
  view.ready = state_.phase == StartupPhase::kReady && view.why.empty();
  return view;
}

std::string FollowerProcess::Metrics() {
  WriteProcessGauges(metrics_, state_, false);
  return metrics_.Serialize();
}

}  // namespace

Exit RunFollower(const WorkerOptions& options) { return FollowerProcess(options).Run(); }

}  // namespace levin
