// How a rank introduces itself, and whether it belongs to this group. Compared before any weight is
// read, so that a mismatch shows in a second (protocol.md 6). Pure.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace levin {

struct RankHello {
  int rank = 0;
  int world_size = 1;
  std::string build_id;
  uint32_t protocol = 0;
  uint64_t config_hash = 0;  // of config.json, tokenizer.json and every option that must be equal
  std::string host;
  std::string device;
  int64_t pid = 0;
};

// kFailedPrecondition that names rank, host, what differs and both values.
Status CheckHello(const RankHello& leader, const RankHello& rank);

}  // namespace levin
