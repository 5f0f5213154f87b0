#include <cstdio>

#include "common/config/options.h"
#include "common/log/log.h"
#include "router/router_process.h"
#include "router/stop_signals.h"

int main(int argc, char** argv) {
  auto parsed = levin::ParseRouterOptions(argc, argv);
  if (!parsed) {
    std::fprintf(stderr, "levin-router: %s\n", parsed.error().message().c_str());
    return levin::kExitBadOptions;
  }
  if (!parsed->help.empty()) {
    std::fputs(parsed->help.c_str(), stdout);
    return 0;
  }
  const levin::LogOptions& log = parsed->options.log;
  if (levin::Status status = levin::StartLog(log.level, log.format, "router"); !status.ok()) {
    std::fprintf(stderr, "levin-router: %s\n", status.message().c_str());
    return levin::kExitBadOptions;
  }
  levin::StopSignals::Block();
  return levin::RunRouter(parsed->options);
}
