// Do a folder's tensors make the network that config.json describes?
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/base/status.h"
#include "common/config/model_config.h"
#include "worker/weights/checkpoint.h"
#include "worker/weights/needed_tensors.h"

namespace levin {

using NeededByName = std::unordered_map<std::string_view, const NeededTensor*>;
NeededByName ByName(const std::vector<NeededTensor>& needed);  // `needed` must outlive it

// Names must match as sets (needed_tensors.h says what is ignored), and each tensor must have the
// type and shape that its name promises. Errors list what is missing and what nobody knows.
Status CheckTensors(const Checkpoint& checkpoint, const std::vector<NeededTensor>& needed,
                    const ModelConfig& config);

// The same for bare names: all that an index tells.
Status CheckNames(const std::vector<std::string_view>& given,
                  const std::vector<NeededTensor>& needed, const ModelConfig& config);

}  // namespace levin
