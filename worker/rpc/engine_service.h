// levin.v1.Engine on the leader, over gRPC's callback API. The reactors translate frames and
// nothing else; leases, queues and order are the SessionHub's.
#pragma once

#include <memory>

#include "worker/rpc/engine_facts.h"
#include "worker/session/session_hub.h"

namespace grpc {
class Service;
}

namespace levin {

class EngineService {
 public:
  virtual ~EngineService() = default;
  virtual grpc::Service& service() = 0;  // for ServerBuilder::RegisterService
  // Before SessionHub::SetReady: what Handshakes answer from then on.
  virtual void SetFacts(EngineFacts facts) = 0;
};

// `hub` must outlive the server that runs the service.
std::unique_ptr<EngineService> MakeEngineService(SessionHub& hub);

}  // namespace levin
