// A model folder into one rank's weights (model.md 6 to 8).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "common/base/status.h"
#include "common/config/model_config.h"
#include "worker/weights/model_weights.h"

namespace levin {

struct LoadOptions {
  int rank = 0;
  int ranks = 1;
  bool quantize_experts_int8 = false;  // bf16 experts become int8 (model.md 7); stored int8 stays
  // Called from LoadWeights' thread as bytes of this rank arrive, with growing numbers; may be
  // empty.
  std::function<void(int64_t bytes_done, int64_t bytes_total)> progress = {};
  int threads = 2;  // that read and convert, the calling one among them; fewer than 1 counts as 1
};

// Reads with pread, shard by shard in file order, only this rank's rows and columns, every byte at
// most once: a group reads a split tensor once in all. Two exceptions read whole rows and keep a
// part. Columns of less than kStridedBytesMin a row (read_plan.h) are cheaper to copy out. And the
// scale of w2 that is made while loading (experts_int8) is that of the whole row (model.md 7): each
// rank looks at all of it. The other way, a maximum of every rank's columns reduced over the group,
// gives the same bits but ties the ranks together expert by expert, and must hold w2 as bf16 until
// the others are there. Whole rows cost copies out of the page cache only (0.03 of 0.18 CPU seconds
// in load_bench at 8 ranks): the disk is read once for all ranks of a machine.
// Given and needed names must match as sets (rotary inv_freq and the native decay buffers are
// ignored); names of model.md 6.1 and 6.4, stored int8 included. All headers are checked before the
// first weight is read or allocated. At most `threads` files are open at once, and beyond the
// weights themselves at most a few MiB (or one row) a thread are held: never a bf16 expert beside
// its int8 form. Errors name file and tensor, what was found and what expected.
Result<ModelWeights> LoadWeights(const std::filesystem::path& model_dir, const ModelConfig& config,
                                 const LoadOptions& options);

}  // namespace levin
