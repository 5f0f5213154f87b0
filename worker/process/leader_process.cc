#include "worker/process/leader_process.h"

#include "worker/process/leader.h"

namespace levin {

Exit RunLeader(const WorkerOptions& options) { return LeaderProcess(options).Run(); }

}  // namespace levin
