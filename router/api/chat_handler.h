// POST /v1/chat/completions
#pragma once

#include "common/base/clock.h"
#include "router/api/api_call.h"
#include "router/inference/generator.h"

namespace levin {

void HandleChat(ApiCall call, Generator& generator, const Clock& clock);

}  // namespace levin
