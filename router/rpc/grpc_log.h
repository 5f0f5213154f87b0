// gRPC's own messages as events of our log.
#pragma once

namespace levin {

// Its errors become warnings `grpc` with text and place; what it calls info and debug is dropped.
// Once, before the first channel or server.
void SendGrpcMessagesToLog();

}  // namespace levin
