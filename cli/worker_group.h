// The N worker processes of one group, started, watched and stopped as one. Owned by the thread of
// the command that supervises them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/children.h"
#include "cli/run_directory.h"
#include "common/config/options.h"

namespace levin {

class WorkerGroup final {
 public:
  // Both must outlive the group.
  WorkerGroup(WorkerOptions options, const RunDirectory& directory, Children& children);

  Status Start();
  // True when the event was about one of these workers.
  bool Handle(const ChildEvent& event);
  void Signal(int signal);
  // Kills one that is late after the group's end began.
  void KillIfLate(TimePoint now);

  bool ready() const { return ready_; }                // rank 0 said so
  bool ending() const { return ending_.has_value(); }  // one has left, the others must follow
  bool gone() const { return ranks_.empty(); }
  std::optional<TimePoint> kill_at() const;  // when KillIfLate wants to be called
  // What the group's end says, once it is gone: the first code that is not "group ended" (6).
  int exit_code() const { return exit_code_; }
  const std::string& end_reason() const { return end_reason_; }
  std::string engine_address() const;  // unix:PATH

 private:
  std::vector<std::string> RankOptions(int rank) const;
  void OnLine(int rank, const ChildEvent& event);
  void OnExit(int rank, int exit_code);
  void ShowProgress(int rank, const std::string& line);
  void EndProgress();

  const WorkerOptions options_;
  const RunDirectory& directory_;
  Children& children_;
  std::map<int, int> ranks_;  // child -> rank, of those that run
  std::vector<int> percent_;  // loaded, by rank
  int shown_percent_ = 0;
  bool redrawing_ = false;  // a terminal's line without its end
  TimePoint shown_at_;
  bool ready_ = false;
  std::optional<TimePoint> ending_;
  bool killed_ = false;
  int exit_code_ = 0;
  std::string end_reason_;
};

}  // namespace levin
