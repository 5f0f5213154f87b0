#include "common/rpc/transport.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <charconv>

#include "common/rpc/callback_threads.h"
#include "common/rpc/limits.h"

namespace levin {
namespace {

constexpr std::string_view kUnix = "unix:";

bool IsUnix(const std::string& address) { return address.rfind(kUnix, 0) == 0; }

}  // namespace

Status CheckAddress(const std::string& address) {
  if (IsUnix(address)) {
    // sun_path of sockaddr_un has 108 bytes, the last a zero.
    if (address.size() > kUnix.size() && address.size() - kUnix.size() < 108) return Status::Ok();
    return InvalidArgument("address '" + address +
                           "': expected unix:PATH with a path of 1 to 107 bytes");
  }
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon != std::string::npos && colon > 0) {
    const char* end = address.data() + address.size();
    const auto parsed = std::from_chars(address.data() + colon + 1, end, port);
    if (parsed.ec != std::errc() || parsed.ptr != end) port = -1;
  }
  if (port >= 0 && port <= 65'535) return Status::Ok();
  return InvalidArgument("address '" + address + "': expected HOST:PORT or unix:PATH");
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address) {
  KeepCallbackThreads();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  arguments.SetMaxSendMessageSize(kMessageBytesMax);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2'000);  // in fact the connect time limit
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

void ApplyServerSettings(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(kMessageBytesMax);
  builder.SetMaxSendMessageSize(kMessageBytesMax);
  // Else a client that pings through a long silent prefill is cut off for too_many_pings.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // Two servers on one port would share its clients silently instead of failing.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

Result<ListeningServer> StartServer(grpc::ServerBuilder& builder, const std::string& address) {
  RETURN_ERROR_IF(CheckAddress(address));
  KeepCallbackThreads();
  ApplyServerSettings(builder);
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  ListeningServer listening;
  listening.server = builder.BuildAndStart();
  if (listening.server == nullptr || port == 0) {
    return Error(Status(Code::kUnavailable, "PORT_IN_USE",
                        "cannot listen on " + address + ": it is in use or not ours to bind"));
  }
  listening.address =
      IsUnix(address) ? address : address.substr(0, address.rfind(':') + 1) + std::to_string(port);
  return listening;
}

}  // namespace levin
