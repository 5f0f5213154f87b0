#include "worker/rpc/rpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>

#include <utility>

#include "common/rpc/transport.h"

namespace levin {
namespace {

class RpcServerImpl final : public RpcServer {
 public:
  explicit RpcServerImpl(ListeningServer listening) : listening_(std::move(listening)) {
    health().SetServingStatus(false);
    health().SetServingStatus("levin.live", true);
  }
  ~RpcServerImpl() override { Shutdown(std::chrono::steady_clock::now()); }

  const std::string& address() const override { return listening_.address; }

  void SetServing(const std::string& service, bool serving) override {
    health().SetServingStatus("", serving);
    health().SetServingStatus(service, serving);
  }

  void Shutdown(TimePoint until) override {
    if (std::exchange(down_, true)) return;
    health().Shutdown();  // else a health watcher would hold the server
    listening_.server->Shutdown(std::chrono::system_clock::now() +
                                std::chrono::duration_cast<std::chrono::microseconds>(
                                    until - std::chrono::steady_clock::now()));
    listening_.server->Wait();
  }

 private:
  grpc::HealthCheckServiceInterface& health() {
    return *listening_.server->GetHealthCheckService();
  }

  ListeningServer listening_;
  bool down_ = false;
};

}  // namespace

Result<std::unique_ptr<RpcServer>> StartRpcServer(const std::string& address,
                                                  grpc::Service& service) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  ASSIGN_OR_RETURN(ListeningServer listening, StartServer(builder, address));
  return std::make_unique<RpcServerImpl>(std::move(listening));
}

}  // namespace levin
