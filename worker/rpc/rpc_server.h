// A gRPC server of ours: the given services, health and reflection beside them, on one address.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"

namespace grpc {
class Service;
}

namespace levin {

class RpcServer {
 public:
  virtual ~RpcServer() = default;                  // Shutdown at once, and waits
  virtual const std::string& address() const = 0;  // with the real port
  // grpc.health.v1: "" and `service`.
  virtual void SetServing(const std::string& service, bool serving) = 0;
  // Streams that still run at `until` are cut.
  virtual void Shutdown(TimePoint until) = 0;
};

// Binds before it returns; errors of StartServer (PORT_IN_USE). "levin.live" is served from the
// start, "" and `service` only when SetServing says so. `service` must outlive the server.
Result<std::unique_ptr<RpcServer>> StartRpcServer(const std::string& address,
                                                  grpc::Service& service);

}  // namespace levin
