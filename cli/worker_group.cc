#include "cli/worker_group.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace levin {
namespace {

constexpr auto kLeaveLimit = std::chrono::seconds(5);
constexpr auto kProgressEvery = std::chrono::seconds(1);
constexpr int kGroupEnded = 6;

std::string Shortest(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
  return text;
}

std::string Ending(int rank, int exit_code) {
  const std::string who = "rank " + std::to_string(rank);
  if (exit_code > 128) return who + " was killed by signal " + std::to_string(exit_code - 128);
  return who + " left with code " + std::to_string(exit_code);
}

}  // namespace

WorkerGroup::WorkerGroup(WorkerOptions options, const RunDirectory& directory, Children& children)
    : options_(std::move(options)), directory_(directory), children_(children) {}

std::string WorkerGroup::engine_address() const { return directory_.Socket("engine"); }

std::vector<std::string> WorkerGroup::RankOptions(int rank) const {
  const WorkerOptions& o = options_;
  std::vector<std::string> lines = {
      "--model=" + o.model,
      "--rank=" + std::to_string(rank),
      "--world-size=" + std::to_string(o.world_size),
      "--leader=" + directory_.Socket("group"),
      "--group-listen=" + directory_.Socket("group"),
      "--engine-listen=" + engine_address(),
      "--epoch-file=" + (directory_.path() / "epoch").string(),
      "--metrics-port=" + std::string(o.metrics_port < 0 ? "off" : std::to_string(o.metrics_port)),
      "--dtype=" + o.dtype,
      "--quantization=" + o.quantization,
      "--batch-invariant=" + std::string(o.batch_invariant.value_or(false) ? "true" : "false"),
      "--cache-bytes=" + std::to_string(o.cache_bytes),
      "--cpu-threads=" + std::to_string(o.cpu_threads),
      "--max-model-len=" + std::to_string(o.max_model_len),
      "--max-num-seqs=" + std::to_string(o.max_num_seqs),
      "--max-num-batched-tokens=" + std::to_string(o.max_num_batched_tokens),
      "--lightning-norm-eps=" + Shortest(o.lightning_norm_eps),
      "--device=" + o.device,
      "--test-corrupt-rank=" + std::to_string(o.corrupt_rank),
      "--log-level=" + o.log.level,
      "--log-format=" + o.log.format};
  if (!o.eval_job.empty()) lines.push_back("--eval-job=" + o.eval_job);
  return lines;
}

Status WorkerGroup::Start() {
  ranks_.clear();
  percent_.assign(static_cast<size_t>(options_.world_size), 0);
  shown_percent_ = 0;
  shown_at_ = std::chrono::steady_clock::now();
  ready_ = false;
  ending_.reset();
  killed_ = false;
  exit_code_ = 0;
  end_reason_.clear();
  for (int rank = 0; rank < options_.world_size; ++rank) {
    ASSIGN_OR_RETURN_STATUS(
        const std::string file,
        directory_.WriteOptions("worker-" + std::to_string(rank), RankOptions(rank)));
    ASSIGN_OR_RETURN_STATUS(const int child, children_.Start({SiblingProgram("levin-worker"),
                                                              "--options-file=" + file}));
    ranks_[child] = rank;
  }
  return Status::Ok();
}

bool WorkerGroup::Handle(const ChildEvent& event) {
  if (event.kind == ChildEvent::kSignal) return false;
  auto it = ranks_.find(event.child);
  if (it == ranks_.end()) return false;
  const int rank = it->second;
  if (event.kind == ChildEvent::kExit) {
    ranks_.erase(it);
    OnExit(rank, event.exit_code);
  } else {
    OnLine(rank, event);
  }
  return true;
}

void WorkerGroup::OnLine(int rank, const ChildEvent& event) {
  const std::string ready = "levin-worker: rank " + std::to_string(rank) + " ready";
  if (event.line.rfind(ready, 0) == 0) {
    ready_ |= rank == 0;
    return;
  }
  const std::string loading = "levin-worker: rank " + std::to_string(rank) + " loading ";
  if (event.line.rfind(loading, 0) == 0)
    return ShowProgress(rank, event.line.substr(loading.size()));
  EndProgress();
  std::fprintf(stderr, "%s\n", event.line.c_str());
}

void WorkerGroup::EndProgress() {
  if (redrawing_) std::fputc('\n', stderr);
  redrawing_ = false;
}

// One line for the whole group: that of the slowest rank, once a second. A terminal gets it redrawn
// in place.
void WorkerGroup::ShowProgress(int rank, const std::string& line) {
  percent_[static_cast<size_t>(rank)] = std::atoi(line.c_str());
  const int slowest = *std::min_element(percent_.begin(), percent_.end());
  const TimePoint now = std::chrono::steady_clock::now();
  const bool done = slowest == 100;
  if (slowest <= shown_percent_ || (!done && now - shown_at_ < kProgressEvery)) return;
  shown_percent_ = slowest;
  shown_at_ = now;
  const bool redraw = ::isatty(STDERR_FILENO) == 1;
  std::fprintf(stderr, redraw ? "\rlevin: loading weights %d%%%s" : "levin: loading weights %d%%%s",
               slowest, redraw && !done ? "" : "\n");
  redrawing_ = redraw && !done;
}

void WorkerGroup::OnExit(int rank, int exit_code) {
  EndProgress();
  if (!ending_) {
    ending_ = std::chrono::steady_clock::now();
    end_reason_ = Ending(rank, exit_code);
    // A living group ends its epoch by itself, streams included; one that never answered has none.
    if (!ready_ && exit_code != 0) Signal(SIGTERM);
  }
  const bool says_more = exit_code_ == 0 || exit_code_ == kGroupEnded;
  if (exit_code != 0 && says_more) exit_code_ = exit_code > 128 ? kGroupEnded : exit_code;
}

void WorkerGroup::Signal(int signal) {
  for (const auto& [child, rank] : ranks_) children_.Signal(child, signal);
}

std::optional<TimePoint> WorkerGroup::kill_at() const {
  if (!ending_ || killed_ || gone()) return std::nullopt;
  return *ending_ + kLeaveLimit;
}

void WorkerGroup::KillIfLate(TimePoint now) {
  const std::optional<TimePoint> at = kill_at();
  if (!at || now < *at) return;
  killed_ = true;
  Signal(SIGKILL);
}

}  // namespace levin
