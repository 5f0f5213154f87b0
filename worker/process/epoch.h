// The epoch: a number that rises with every start of the group (protocol.md 7).
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace levin {

// max(unix_ms, stored + 1), stored again before it is used. No file: unix_ms. The file's folder
// must exist; a file that is no number is an error, never a guess.
Result<uint64_t> NextEpoch(const std::string& file, int64_t unix_ms);

// Makes the next epoch rise above `seen` (a router spoke of it). No file: nothing to do.
Status StoreEpoch(const std::string& file, uint64_t seen);

}  // namespace levin
