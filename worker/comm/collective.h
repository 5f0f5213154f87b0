// Sums and gathers between the ranks of a group. Sums are taken in rank order whatever the size of
// the message, so every rank obtains the same bits: routing and sampling are decisions that each
// rank takes for itself (model.md 8.3).
//
// All ranks make the same calls in the same order with the same sizes. One thread per rank calls;
// Abort alone may come from any thread. Once a call has failed every later one fails too.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "common/base/status.h"

namespace levin {

class Collective {
 public:
  virtual ~Collective() = default;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  // values += those of the other ranks, in place: ((v0 + v1) + v2) + ... in fp32.
  // kUnavailable: aborted, or a rank did not come within the time limit (named in the message).
  virtual Status AllReduceSum(std::span<float> values) = 0;

  // out = in of rank 0, in of rank 1, ...; out.size() = ranks * in.size(). `in` may lie in `out`
  // at its own place. Errors as above.
  virtual Status AllGather(std::span<const std::byte> in, std::span<std::byte> out) = 0;

  // Wakes every rank that waits, here and elsewhere; their calls fail with this reason's text on
  // this rank and with "aborted by rank N" on the others. Final.
  virtual void Abort(std::string_view reason) = 0;
};

}  // namespace levin
