// The few words that everybody uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace levin {

using TokenId = int32_t;      // an id of the vocabulary, >= 0
using SequenceId = uint64_t;  // never used twice in an epoch

// [first, first + count) in some array that the context names.
struct Range {
  int32_t first = 0;
  int32_t count = 0;
  int32_t end() const { return first + count; }
  bool operator==(const Range&) const = default;
};

enum class FinishReason : uint8_t {
  kNone = 0,
  kStop = 1,       // a stop id (the end token among them) or, in the router, a stop string
  kLength = 2,     // max_new_tokens or the model's limit
  kCancelled = 3,  // by the client, or because its router is gone
  kDeadline = 4,
  kError = 5,
};

constexpr std::string_view Name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "none";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kDeadline:
      return "deadline";
    case FinishReason::kError:
      return "error";
  }
  return "?";
}

}  // namespace levin
