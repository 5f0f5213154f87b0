#include "router/rpc/grpc_log.h"

#include <grpc/support/log.h>

#include "common/log/log.h"

namespace levin {
namespace {

void Write(gpr_log_func_args* message) {
  if (message->severity < GPR_LOG_SEVERITY_ERROR) return;
  Log(LogLevel::kWarning, "grpc",
      {{"message", message->message}, {"file", message->file}, {"line", message->line}});
}

}  // namespace

void SendGrpcMessagesToLog() { gpr_set_log_function(Write); }

}  // namespace levin
