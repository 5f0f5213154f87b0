#include "router/rpc/inference_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <mutex>
#include <utility>

#include "common/rpc/callback_threads.h"
#include "router/rpc/inference_service.h"

namespace levin {
namespace {

constexpr char kInference[] = "levin.v1.Inference";
constexpr char kLive[] = "levin.live";
constexpr auto kStopLimit = std::chrono::seconds(2);

// Both are switches of the whole process, read when a server is built.
void EnablePlugins() {
  static std::once_flag once;
  std::call_once(once, [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  });
}

std::string HostOf(const std::string& host) {
  const bool bare_v6 = host.find(':') != std::string::npos && host.front() != '[';
  return bare_v6 ? "[" + host + "]" : host;
}

void ApplySettings(const InferenceServerOptions& options, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.message_bytes_max));
  builder.SetMaxSendMessageSize(static_cast<int>(options.message_bytes_max));
  // Clients may ping every 30 s through a long silent prefill; we look for dead ones every 60 s.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  // Two servers on one port would share its clients silently instead of failing.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

class Server final : public InferenceServer {
 public:
  Server(const InferenceServerOptions& options, Generator& generator, const Clock& clock,
         std::function<void()> on_idle)
      : keys_(options.api_keys),
        service_(InferenceService::Make(generator, keys_, clock, std::move(on_idle))) {}
  ~Server() override { Stop(); }

  Status Listen(const InferenceServerOptions& options) {
    EnablePlugins();
    KeepCallbackThreads();
    grpc::ServerBuilder builder;
    ApplySettings(options, builder);
    const std::string host = HostOf(options.host);
    int port = 0;
    builder.AddListeningPort(host + ":" + std::to_string(options.port),
                             grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_->service());
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port == 0) {
      return {Code::kUnavailable, "PORT_IN_USE",
              "cannot listen on " + host + ":" + std::to_string(options.port) +
                  " for gRPC: it is in use or not ours to bind"};
    }
    address_ = host + ":" + std::to_string(port);
    SetServing(false);
    server_->GetHealthCheckService()->SetServingStatus(kLive, true);
    return Status::Ok();
  }

  const std::string& address() const override { return address_; }
  void SetServing(bool serving) override {
    if (server_ == nullptr) return;
    server_->GetHealthCheckService()->SetServingStatus("", serving);
    server_->GetHealthCheckService()->SetServingStatus(kInference, serving);
  }
  void Drain() override { service_->Drain(); }
  int in_flight() const override { return service_->in_flight(); }

  void Stop() override {
    if (server_ == nullptr) return;
    service_->Drain();
    service_->CancelAll();
    server_->Shutdown(std::chrono::system_clock::now() + kStopLimit);
    server_.reset();
  }

 private:
  const ApiKeys keys_;
  const std::unique_ptr<InferenceService> service_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

Result<std::unique_ptr<InferenceServer>> InferenceServer::Start(InferenceServerOptions options,
                                                                Generator& generator,
                                                                const Clock& clock,
                                                                std::function<void()> on_idle) {
  auto server = std::make_unique<Server>(options, generator, clock, std::move(on_idle));
  RETURN_ERROR_IF(server->Listen(options));
  return server;
}

}  // namespace levin
