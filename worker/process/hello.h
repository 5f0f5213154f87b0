// How this process introduces itself to its group.
#pragma once

#include "common/config/options.h"
#include "worker/group/rank_hello.h"
#include "worker/process/model_folder.h"

namespace levin {

RankHello MakeHello(const WorkerOptions& options, const ModelFolder& folder);

}  // namespace levin
