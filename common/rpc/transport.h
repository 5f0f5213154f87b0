// How our channels and servers are set up, the same on both ends (protocol.md 4). Addresses are
// HOST:PORT or unix:PATH everywhere.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <string>

#include "common/base/status.h"

namespace levin {

// A channel that reconnects by itself (backoff 0.1 to 1 s, connect limit 2 s), pings every 30 s
// also without calls, and carries messages of kMessageBytesMax. Calls fail fast: wait-for-ready is
// off.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address);

// kInvalidArgument for anything that is neither HOST:PORT nor unix:PATH.
Status CheckAddress(const std::string& address);

struct ListeningServer {
  std::unique_ptr<grpc::Server> server;
  std::string address;  // with the real port where 0 was asked
};

// Message limit and keep-alive rules for a server that our own channels talk to. Call before
// registering services; StartServer does it itself.
void ApplyServerSettings(grpc::ServerBuilder& builder);

// Binds `address` and starts the builder's services with ApplyServerSettings. A taken port or path
// is kUnavailable with reason PORT_IN_USE and the address.
Result<ListeningServer> StartServer(grpc::ServerBuilder& builder, const std::string& address);

}  // namespace levin
