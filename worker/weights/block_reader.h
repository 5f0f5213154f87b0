// Copies blocks of a stored tensor into memory, converting on the way.
#pragma once

#include <functional>
#include <vector>

#include "common/base/status.h"
#include "worker/weights/placement.h"
#include "worker/weights/safetensors.h"

namespace levin {

// One thread. Keeps one staging buffer of at most a few MiB (or one row, when that is longer).
class BlockReader final {
 public:
  // `read` hears the size of every piece as it arrives.
  explicit BlockReader(std::function<void(int64_t bytes)> read) : read_(std::move(read)) {}

  // The stored tensor's type was accepted (needed_tensors.h) and its shape checked.
  Status Read(const RegularFile& file, const StoredTensor& tensor,
              const std::vector<WeightBlock>& blocks);

  // What Read will read for these blocks: whole rows of the stored tensor.
  static int64_t BytesOf(const StoredTensor& tensor, const std::vector<WeightBlock>& blocks);

 private:
  Status ReadBlock(const RegularFile& file, const StoredTensor& tensor, const WeightBlock& block);

  std::function<void(int64_t)> read_;
  std::vector<std::byte> staging_;
};

}  // namespace levin
