// What tells clients and operators about the server: models, health, version, metrics.
#pragma once

#include <string>

#include "router/api/api_call.h"
#include "router/inference/generator.h"

namespace levin {

void HandleModels(ApiCall call, const Generator& generator);
// `id`: as it stands in the path, percent-encoded or not.
void HandleModel(ApiCall call, const Generator& generator, std::string_view id);
// 200 when a request would be served now, else what a request would be told.
void HandleReady(ApiCall call, const Status& ready);
void HandleAlive(ApiCall call);
void HandleVersion(ApiCall call);
void HandleMetrics(ApiCall call, std::string text);

}  // namespace levin
