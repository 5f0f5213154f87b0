// POST /tokenize, POST /detokenize, GET /tokenizer_info: answered here, never by the engine.
#pragma once

#include "router/api/api_call.h"
#include "router/inference/generator.h"

namespace levin {

void HandleTokenize(ApiCall call, const Generator& generator);
void HandleDetokenize(ApiCall call, const Generator& generator);
void HandleTokenizerInfo(ApiCall call, const Generator& generator);

}  // namespace levin
