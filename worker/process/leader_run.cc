// The engine at work, and the end of the epoch.
#include <cstdio>
#include <string>
#include <utility>

#include "worker/process/leader.h"

namespace levin {

void LeaderProcess::SayReady() const {
  std::string line = "levin-worker: rank 0 ready";
  if (engine_server_ != nullptr) line += " engine=" + engine_server_->address();
  if (group_server_ != nullptr) line += " group=" + group_server_->address();
  line += MetricsAddress(options_, health_.get());
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

}  // namespace levin
