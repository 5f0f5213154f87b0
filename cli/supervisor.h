// `levin serve`: one router and one worker group as children. Starts them, says when they can
// answer, restarts a group (or a router) that died, drains on SIGTERM. One thread.
#pragma once

#include <optional>
#include <string>

#include "cli/children.h"
#include "cli/run_directory.h"
#include "cli/worker_group.h"
#include "common/config/options.h"

namespace levin {

class Supervisor final {
 public:
  // `directory` and `children` must outlive it.
  Supervisor(ServeOptions options, const RunDirectory& directory, Children& children);

  int Run();  // until a signal or a failure that a restart cannot cure; the exit code

 private:
  enum class Phase { kRunning, kDraining, kStopping };

  Status StartRouter();
  Status StartGroup();
  void Handle(const ChildEvent& event);
  void OnRouterLine(const ChildEvent& event);
  void OnRouterExit(int exit_code);
  void OnSignal(int signal);
  void OnGroupGone();
  void ScheduleRestart();
  void Tick(TimePoint now);
  TimePoint NextWake() const;
  void Fail(int exit_code);  // stop everything; Run returns this code
  void StopWorkers();
  bool Done() const;

  ServeOptions options_;
  const RunDirectory& directory_;
  Children& children_;
  WorkerGroup group_;
  Phase phase_ = Phase::kRunning;
  int signals_ = 0;  // SIGTERM and SIGINT that came: drain, end now, kill
  int exit_code_ = 0;
  int router_ = 0;  // child id; 0: none
  bool router_listening_ = false;
  bool announced_ = false;
  bool group_was_ready_ = false;  // in its present life
  int failures_ = 0;              // starts in a row that never became ready
  std::optional<TimePoint> restart_group_at_;
  std::optional<TimePoint> restart_router_at_;
  std::optional<TimePoint> kill_at_;
};

}  // namespace levin
