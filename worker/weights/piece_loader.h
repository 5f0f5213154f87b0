// Pieces into memory by several threads: while one converts, others read.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "common/base/status.h"
#include "worker/weights/read_plan.h"

namespace levin {

// Threads take pieces in order, each with one open file and one staging buffer; the calling thread
// is one of `threads` and the only one that calls `progress`, with growing numbers. Returns the sum
// of the digests of the pieces that have one, which does not depend on who loaded what: each is
// XXH3-64 of the filled bytes, taken while they are warm, seeded with their position. Of several
// errors the one of the earliest piece comes back.
Result<uint64_t> LoadPieces(std::span<const ReadPiece> pieces, int threads,
                            const std::function<void(int64_t done, int64_t total)>& progress);

}  // namespace levin
