#include "cli/supervisor.h"

#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace levin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kFailuresMax = 5;
constexpr auto kStopLimit = seconds(10);
constexpr char kListening[] = "levin-router: listening http://";
constexpr char kReady[] = "levin-router: ready ";

TimePoint Now() { return std::chrono::steady_clock::now(); }

// "HOST:PORT grpc HOST:PORT" behind http:// -> the two ports; -1 where there is none.
struct Ports {
  int http = -1;
  int grpc = -1;
};

Ports PortsOf(const std::string& addresses) {
  Ports ports;
  const size_t space = addresses.find(' ');
  const std::string http = addresses.substr(0, space);
  ports.http = std::atoi(http.substr(http.rfind(':') + 1).c_str());
  const size_t grpc = addresses.find("grpc ");
  if (grpc != std::string::npos && addresses.find(':', grpc) != std::string::npos) {
    ports.grpc = std::atoi(addresses.substr(addresses.rfind(':') + 1).c_str());
  }
  return ports;
}

std::vector<std::string> RouterOptionLines(const RouterOptions& o, const std::string& engine) {
  std::vector<std::string> lines = {
      "--model=" + o.model,
      "--group=" + engine,
      "--host=" + o.host,
      "--port=" + std::to_string(o.port),
      "--grpc-port=" + std::string(o.grpc_port < 0 ? "off" : std::to_string(o.grpc_port)),
      "--max-model-len=" + std::to_string(o.max_model_len),
      "--default-max-tokens=" + std::to_string(o.default_max_tokens),
      "--max-output-tokens=" + std::to_string(o.max_output_tokens),
      "--max-queued-requests=" + std::to_string(o.max_queued_requests),
      "--request-timeout=" + std::to_string(o.request_timeout_ms) + "ms",
      "--shutdown-timeout=" + std::to_string(o.shutdown_timeout_ms) + "ms",
      "--sse-ping-interval=" + std::to_string(o.sse_ping_interval_ms) + "ms",
      "--max-logprobs=" + std::to_string(o.max_logprobs),
      "--chat-template=" + o.chat_template,
      "--reasoning-parser=" + o.reasoning_parser,
      "--dtype=" + o.dtype,
      "--quantization=" + o.quantization,
      "--log-level=" + o.log.level,
      "--log-format=" + o.log.format};
  for (const std::string& name : o.served_model_names)
    lines.push_back("--served-model-name=" + name);
  for (const std::string& key : o.api_keys) lines.push_back("--api-key=" + key);
  return lines;
}

}  // namespace

Supervisor::Supervisor(ServeOptions options, const RunDirectory& directory, Children& children)
    : options_(std::move(options)),
      directory_(directory),
      children_(children),
      group_(options_.worker, directory, children) {}

int Supervisor::Run() {
  if (Status status = StartRouter(); !status.ok()) {
    std::fprintf(stderr, "levin: %s\n", status.message().c_str());
    return 1;
  }
  while (!Done()) {
    const std::optional<ChildEvent> event = children_.Next(NextWake());
    if (event) Handle(*event);
    Tick(Now());
  }
  return exit_code_;
}

bool Supervisor::Done() const {
  return phase_ == Phase::kStopping && router_ == 0 && group_.gone();
}

// The workers start when the router has its ports: a taken port shows before weights are read.
Status Supervisor::StartRouter() {
  ASSIGN_OR_RETURN_STATUS(
      const std::string file,
      directory_.WriteOptions("router",
                              RouterOptionLines(options_.router, group_.engine_address())));
  ASSIGN_OR_RETURN_STATUS(
      router_, children_.Start({SiblingProgram("levin-router"), "--options-file=" + file}));
  return Status::Ok();
}

Status Supervisor::StartGroup() {
  group_was_ready_ = false;
  return group_.Start();
}

void Supervisor::Handle(const ChildEvent& event) {
  if (event.kind == ChildEvent::kSignal) return OnSignal(event.signal);
  if (event.child == router_) {
    return event.kind == ChildEvent::kExit ? OnRouterExit(event.exit_code) : OnRouterLine(event);
  }
  if (!group_.Handle(event)) return;
  if (group_.ready() && !group_was_ready_) {
    group_was_ready_ = true;
    failures_ = 0;
  }
  if (event.kind == ChildEvent::kExit && group_.gone()) OnGroupGone();
}

void Supervisor::OnRouterLine(const ChildEvent& event) {
  const std::string& line = event.line;
  if (line.rfind(kListening, 0) == 0) {
    const Ports ports = PortsOf(line.substr(std::strlen(kListening)));
    options_.router.port = ports.http;  // a restarted router keeps its addresses
    options_.router.grpc_port = ports.grpc;
    const bool first = !std::exchange(router_listening_, true);
    if (!first) return;
    if (Status status = StartGroup(); !status.ok()) {
      std::fprintf(stderr, "levin: %s\n", status.message().c_str());
      Fail(1);
    }
    return;
  }
  if (line.rfind(kReady, 0) == 0) {
    if (!std::exchange(announced_, true)) {
      std::printf("levin: ready %s\n", line.c_str() + std::strlen(kReady));
      std::fflush(stdout);
    }
    return;
  }
  std::fprintf(stderr, "%s\n", line.c_str());
}

void Supervisor::OnRouterExit(int exit_code) {
  router_ = 0;
  if (phase_ == Phase::kDraining) return StopWorkers();
  if (phase_ != Phase::kRunning) return;
  if (!router_listening_) return Fail(exit_code > 128 || exit_code == 0 ? 1 : exit_code);
  std::fprintf(stderr, "levin: the router ended (code %d), starting it again\n", exit_code);
  restart_router_at_ = Now() + milliseconds(200);
}

void Supervisor::OnSignal(int signal) {
  if (++signals_ >= 3 || phase_ == Phase::kStopping) {
    if (router_ != 0) children_.Signal(router_, SIGKILL);
    group_.Signal(SIGKILL);
    phase_ = Phase::kStopping;
    return;
  }
  if (signals_ == 2) {  // no more patience: the router ends its streams with an error each
    std::fprintf(stderr, "levin: %s again, ending what still runs\n", strsignal(signal));
    children_.Signal(router_, SIGTERM);
    kill_at_ = Now() + kStopLimit;
    return;
  }
  std::fprintf(stderr, "levin: %s, draining\n", strsignal(signal));
  phase_ = Phase::kDraining;
  if (router_ == 0) return StopWorkers();
  children_.Signal(router_, SIGTERM);
  kill_at_ = Now() + milliseconds(options_.router.shutdown_timeout_ms) + kStopLimit;
}

void Supervisor::StopWorkers() {
  phase_ = Phase::kStopping;
  group_.Signal(SIGTERM);
  kill_at_ = Now() + kStopLimit;
}

void Supervisor::Fail(int exit_code) {
  if (exit_code_ == 0) exit_code_ = exit_code;
  if (router_ != 0) children_.Signal(router_, SIGTERM);
  StopWorkers();
}

void Supervisor::OnGroupGone() {
  if (phase_ != Phase::kRunning) return;
  const bool never_answered = !announced_ && !group_was_ready_;
  if (never_answered) {  // wrong model, no memory: a restart would meet the same
    std::fprintf(stderr, "levin: the worker group could not start: %s\n",
                 group_.end_reason().c_str());
    return Fail(std::max(1, group_.exit_code()));
  }
  std::fprintf(stderr, "levin: the worker group ended: %s; starting it again\n",
               group_.end_reason().c_str());
  ScheduleRestart();
}

// At once after a life that was ready, then 1, 2, 4 … 16 s.
void Supervisor::ScheduleRestart() {
  if (!group_was_ready_) ++failures_;
  if (failures_ >= kFailuresMax) {
    std::fprintf(stderr, "levin: giving up after %d starts that failed\n", failures_);
    return Fail(6);
  }
  const auto delay = group_was_ready_ ? seconds(0) : seconds(1 << (failures_ - 1));
  restart_group_at_ = Now() + delay;
}

void Supervisor::Tick(TimePoint now) {
  group_.KillIfLate(now);
  if (kill_at_ && now >= *kill_at_) {
    kill_at_.reset();
    std::fprintf(stderr, "levin: still running after the time limit, killing\n");
    if (router_ != 0) children_.Signal(router_, SIGKILL);
    group_.Signal(SIGKILL);
  }
  if (phase_ != Phase::kRunning) return;
  Status status;
  if (restart_group_at_ && now >= *restart_group_at_) {
    restart_group_at_.reset();
    status = StartGroup();
  }
  if (status.ok() && restart_router_at_ && now >= *restart_router_at_) {
    restart_router_at_.reset();
    status = StartRouter();
  }
  if (!status.ok()) {
    std::fprintf(stderr, "levin: %s\n", status.message().c_str());
    Fail(1);
  }
}

TimePoint Supervisor::NextWake() const {
  TimePoint wake = Now() + seconds(3600);
  for (const auto& at : {restart_group_at_, restart_router_at_, kill_at_, group_.kill_at()}) {
    if (at) wake = std::min(wake, *at);
  }
  return wake;
}

}  // namespace levin
