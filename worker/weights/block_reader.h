// Reads a piece of a stored tensor into its place, converting on the way.
#pragma once

#include "common/base/status.h"
#include "common/config/regular_file.h"
#include "worker/weights/read_plan.h"

namespace levin {

// One thread. Its staging buffer, as long as the longest piece, is the only memory that ever holds
// weights in a form that is not kept: bf16 experts become int8 row by row.
class BlockReader final {
 public:
  // The stored tensor's type was accepted (needed_tensors.h) and its shape checked.
  Status Read(const RegularFile& file, const ReadPiece& piece);

 private:
  Buffer staging_;
};

}  // namespace levin
