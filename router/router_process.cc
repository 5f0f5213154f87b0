#include "router/router_process.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "common/config/defined_tokens.h"
#include "common/http/http_server.h"
#include "common/log/log.h"
#include "router/api/api.h"
#include "router/dispatch/group_pool.h"
#include "router/dispatch/wake_bell.h"
#include "router/http/request_watch.h"
#include "router/inference/generator.h"
#include "router/inference/served_model.h"
#include "router/metrics_feed.h"
#include "router/rpc/grpc_engine_client.h"
#include "router/rpc/grpc_log.h"
#include "router/rpc/inference_server.h"
#include "router/stop_signals.h"

namespace levin {
namespace {

using std::chrono::milliseconds;

constexpr size_t kBodyBytesMin = 32u << 20;
constexpr size_t kBodyBytesPerToken = 24;  // of a prompt of the longest kind: ids as JSON
constexpr int kHttpThreadsMin = 4;
constexpr auto kEndLimit = std::chrono::seconds(2);  // for answers of requests that were cut off

uint64_t RandomBits() {
  std::random_device source;
  return uint64_t{source()} << 32 | source();
}

size_t BodyBytesMax(int64_t max_model_len) {
  const auto tokens = static_cast<size_t>(std::max<int64_t>(max_model_len, 0));
  return std::max(kBodyBytesMin, kBodyBytesPerToken * tokens);
}

// Handlers encode text on the server's threads: several, so that a few long texts at once leave
// some for /health, whatever the number of cores.
int HttpThreads() {
  return std::max(kHttpThreadsMin, static_cast<int>(std::thread::hardware_concurrency()));
}

std::string HostAndPort(const std::string& host, int port) {
  const bool bare_v6 = host.find(':') != std::string::npos && host.front() != '[';
  return (bare_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

int Fail(const Status& status, int exit_code) {
  std::fprintf(stderr, "levin-router: %s\n", status.message().c_str());
  return exit_code;
}

class Router final {
 public:
  Router(const RouterOptions& options, std::unique_ptr<const ServedModel> model,
         uint64_t tokenizer_hash);
  ~Router() { StopAll(); }

  Status Listen();
  void Serve();  // until a signal
  void Drain();

 private:
  void OnSignal(int signal);
  void OnGroupChange() { bell_.Ring(); }
  void TellReadiness();
  std::string MetricsText() const;
  int InFlight() const;
  void AwaitIdle(TimePoint until, int signals_max);
  void StopAll();
  std::string Addresses() const;

  const RouterOptions options_;
  const SystemClock clock_;
  const std::unique_ptr<const ServedModel> model_;
  WakeBell bell_;  // rung for whatever this class waits for
  std::atomic<int> signals_ = 0;
  bool announced_ = false;
  MetricsFeed metrics_;
  RequestWatch watch_;
  MetricsFeed::Groups groups_;
  std::unique_ptr<GroupPool> pool_;
  std::unique_ptr<Generator> generator_;
  std::unique_ptr<HttpApi> api_;
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<InferenceServer> grpc_;  // null: off
  StopSignals stop_signals_;
};

Router::Router(const RouterOptions& options, std::unique_ptr<const ServedModel> model,
               uint64_t tokenizer_hash)
    : options_(options),
      model_(std::move(model)),
      metrics_(model_->info().names.front(), options.groups.size()),
      watch_(
          clock_, [this](const RequestEnd& end) { metrics_.OnHttpEnd(end); },
          [this] { bell_.Ring(); }),
      stop_signals_([this](int signal) { OnSignal(signal); }) {
  std::vector<EngineClient*> clients;
  for (const std::string& address : options_.groups) {
    GrpcEngineClientOptions client;
    client.address = address;
    client.router_id = "router-" + std::to_string(getpid());
    client.router_incarnation = RandomBits();
    client.tokenizer_hash = tokenizer_hash;
    client.template_name = options_.chat_template;
    client.max_queued_requests = options_.max_queued_requests;
    client.on_epoch_end = [this, index = groups_.size()](const std::string& reason) {
      metrics_.OnEpochEnd(index, reason);
    };
    groups_.push_back(
        std::make_unique<GrpcEngineClient>(client, clock_, [this] { OnGroupChange(); }));
    clients.push_back(groups_.back().get());
  }
  pool_ = std::make_unique<GroupPool>(std::move(clients));
  generator_ = std::make_unique<Generator>(*model_, *pool_, clock_, options_.request_timeout_ms,
                                           &metrics_.metrics());
  api_ =
      std::make_unique<HttpApi>(*generator_, *pool_, clock_,
                                ApiOptions{.api_keys = options_.api_keys,
                                           .metrics_text = [this] { return MetricsText(); },
                                           .metrics = &metrics_.metrics(),
                                           .sse_ping_interval_ms = options_.sse_ping_interval_ms});
}

Status Router::Listen() {
  const size_t body_bytes_max = BodyBytesMax(options_.max_model_len);
  if (options_.grpc_port >= 0) {  // first: handlers of HTTP ask it
    InferenceServerOptions grpc;
    grpc.host = options_.grpc_host.empty() ? options_.host : options_.grpc_host;
    grpc.port = options_.grpc_port;
    grpc.api_keys = options_.api_keys;
    grpc.message_bytes_max =
        std::max<int64_t>(grpc.message_bytes_max, static_cast<int64_t>(body_bytes_max));
    ASSIGN_OR_RETURN_STATUS(
        grpc_, InferenceServer::Start(grpc, *generator_, clock_, [this] { bell_.Ring(); }));
  }
  HttpServerOptions http;
  http.host = options_.host;
  http.port = static_cast<uint16_t>(options_.port);
  http.body_bytes_max = body_bytes_max;
  http.threads = HttpThreads();
  ASSIGN_OR_RETURN_STATUS(http_, HttpServer::Start(http, watch_.Wrap(api_->handler())));
  std::printf("levin-router: listening %s\n", Addresses().c_str());
  std::fflush(stdout);
  return Status::Ok();
}

std::string Router::Addresses() const {
  return "http://" + HostAndPort(options_.host, http_->port()) + " grpc " +
         (grpc_ ? grpc_->address() : "off");
}

void Router::Serve() {
  while (signals_ == 0) {
    TellReadiness();
    bell_.Wait(clock_.Now() + std::chrono::hours(1));
  }
}

void Router::TellReadiness() {
  const auto group = pool_->group();
  if (grpc_) grpc_->SetServing(group != nullptr);
  if (group == nullptr || std::exchange(announced_, true)) return;
  metrics_.OnFirstGroup(*group, pool_->capacity(), options_.dtype);
  std::printf("levin-router: ready %s\n", Addresses().c_str());
  std::fflush(stdout);
}

void Router::Drain() {
  Log(LogLevel::kInfo, "drain", {{"in_flight", InFlight()}});
  metrics_.SetDraining();
  api_->Drain();
  if (grpc_) {
    grpc_->SetServing(false);
    grpc_->Drain();
  }
  http_->StopAccepting();
  AwaitIdle(clock_.Now() + milliseconds(options_.shutdown_timeout_ms), 1);
  for (const auto& group : groups_) group->Stop();  // what still runs is told so
  AwaitIdle(clock_.Now() + kEndLimit, 2);
  Log(LogLevel::kInfo, "stopped", {{"cut_off", InFlight()}});
}

std::string Router::MetricsText() const {
  return metrics_.Text(groups_, grpc_ ? grpc_->in_flight() : 0);
}

int Router::InFlight() const { return watch_.in_flight() + (grpc_ ? grpc_->in_flight() : 0); }

void Router::AwaitIdle(TimePoint until, int signals_max) {
  while (InFlight() > 0 && signals_ <= signals_max && clock_.Now() < until) bell_.Wait(until);
}

void Router::OnSignal(int) {
  ++signals_;
  bell_.Ring();
}

// Servers first: their handlers use everything else.
void Router::StopAll() {
  if (http_) http_->Stop();
  if (grpc_) grpc_->Stop();
  for (const auto& group : groups_) group->Stop();
}

}  // namespace

int RunRouter(const RouterOptions& options) {
  if (options.groups.empty()) {
    return Fail(InvalidArgument("no worker group: give --group HOST:PORT or unix:PATH"),
                kExitBadOptions);
  }
  SendGrpcMessagesToLog();
  const SystemClock clock;
  auto model = ServedModel::Load(options, clock.UnixMs() / 1000);
  if (!model) return Fail(model.error(), kExitBadModel);
  const auto tokens = DefinedTokens(options.model, (*model)->info().vocab_size);
  if (!tokens) return Fail(tokens.error(), kExitBadModel);

  Router router(options, *std::move(model), tokens->hash);
  if (Status status = router.Listen(); !status.ok()) {
    return Fail(status, status.reason() == "PORT_IN_USE" ? kExitPortInUse : kExitOther);
  }
  router.Serve();
  router.Drain();
  return 0;
}

}  // namespace levin
