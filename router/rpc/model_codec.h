// The served model as GetModel tells it, and text that a protobuf string can hold. Pure.
#pragma once

#include <string>
#include <string_view>

#include "levin/v1/inference.pb.h"
#include "router/inference/generator.h"

namespace levin {

void DescribeModel(const Generator& generator, bool draining, v1::GetModelResponse& out);

// Valid UTF-8: what is ill-formed, or cut at the end, becomes U+FFFD.
std::string WholeText(std::string_view bytes);

}  // namespace levin
