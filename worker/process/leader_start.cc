// From the files of the model to a group that has met: no weights yet.
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "common/rpc/limits.h"
#include "worker/comm/local_collective.h"
#include "worker/comm/shm_collective.h"
#include "worker/process/epoch.h"
#include "worker/process/hello.h"
#include "worker/process/leader.h"
#include "worker/process/leftover_segments.h"

namespace levin {

OrExit<void> LeaderProcess::StartUp() {
  OrExit<RankInput> input = ReadRankInput(options_);
  if (!input) return tl::unexpected(std::move(input).error());
  folder_ = std::move(input->folder);
  job_ = std::move(input->job);
  const Result<uint64_t> epoch = NextEpoch(options_.epoch_file, clock_.UnixMs());
  if (!epoch) return ExitWith(ExitCode::kConfig, epoch.error());
  epoch_ = *epoch;
  return InOrder(*this, {&LeaderProcess::OpenDoors, &LeaderProcess::GatherRanks,
                         &LeaderProcess::BuildCollective, &LeaderProcess::LoadModel});
}

// Ports first: a taken one shows before anything costs time. Handshakes get MODEL_LOADING for now.
OrExit<void> LeaderProcess::OpenDoors() {
  hub_.emplace(HubOptions{.epoch = epoch_, .tokenizer_hash = folder_.tokenizer.hash}, inbox_,
               clock_);
  board_.emplace(MakeHello(options_, folder_), clock_,
                 [this](const RankLoss& loss) { OnLost(loss); });
  engine_service_ = MakeEngineService(*hub_);
  group_ = MakeGroupService(*board_);
  auto health = OpenHealth(options_, {[this] { return Health(); }, [this] { return Metrics(); }});
  if (!health) return tl::unexpected(std::move(health).error());
  health_ = *std::move(health);
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
  auto watch = StartWatch([this] { OnTick(); }, [this](int count) { OnSignal(count); });
  if (!watch) return tl::unexpected(std::move(watch).error());
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

}  // namespace levin
