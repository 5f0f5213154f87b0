#include "worker/process/hello.h"

#include <unistd.h>

#include "common/base/version.h"
#include "common/rpc/limits.h"

namespace levin {

RankHello MakeHello(const WorkerOptions& options, const ModelFolder& folder) {
  char host[256] = {};
  (void)gethostname(host, sizeof host - 1);
  return {.rank = options.rank,
          .world_size = options.world_size,
          .build_id = kVersion,
          .protocol = kProtocolMajor,
          .config_hash = folder.config_hash,
          .host = host,
          .device = options.device,
          .pid = getpid()};
}

}  // namespace levin
