#include "worker/weights/read_plan.h"

#include <algorithm>
#include <map>

#include "common/base/check.h"
#include "worker/weights/checkpoint_check.h"

namespace levin {
namespace {

// Bytes before a place in the weights, as if all buffers lay end to end in their order.
class Positions final {
 public:
  explicit Positions(const ModelWeights& weights) {
    int64_t before = 0;
    for (const Buffer& buffer : weights.buffers) {
      begins_.emplace(buffer.data(), before);
      before += buffer.bytes();
    }
  }
  int64_t Of(const std::byte* place) const {
    const auto next = begins_.upper_bound(place);
    CHECK(next != begins_.begin());
    const auto& [data, before] = *std::prev(next);
    return before + (place - data);
  }

 private:
  std::map<const std::byte*, int64_t> begins_;
};

int64_t Columns(const StoredTensor& tensor) {
  return tensor.shape.size() < 2 ? 1 : tensor.shape.back();
}

int64_t RowBytes(const StoredTensor& tensor) {
  int64_t elements = 1;
  for (int64_t dim : tensor.shape) elements *= dim;
  return elements == 0 ? 0 : tensor.bytes / elements * Columns(tensor);
}

// Stored as it is kept, one row's columns long enough to be worth a call.
bool ReadsColumns(const WeightBlock& block, int64_t row_bytes) {
  return block.scales == nullptr && block.to.dtype != DType::kF32 &&
         block.to.row_bytes() < row_bytes && block.to.row_bytes() >= kStridedBytesMin;
}

// A scale that was stored as [rows, 1] is a column like one of [rows].
void Cut(const SafetensorsFile& file, const StoredTensor& tensor, const WeightBlock& block,
         bool digested, const Positions& positions, std::vector<ReadPiece>& pieces) {
  const int64_t rows = block.to.shape[0];
  const int64_t row_bytes = RowBytes(tensor);
  const bool columns = ReadsColumns(block, row_bytes);
  const int64_t begin = columns ? block.column_first * (row_bytes / Columns(tensor)) : 0;
  const int64_t read = columns ? block.to.row_bytes() : row_bytes;
  const int64_t step = std::max<int64_t>(1, kPieceBytes / (2 * Columns(tensor)));
  for (int64_t first = 0; first < rows; first += step) {
    const int64_t count = std::min(step, rows - first);
    WeightBlock part = block;
    part.row_first += first;
    part.to = block.to.Rows(first, count);
    if (block.scales != nullptr) part.scales += first;
    pieces.push_back({&file, &tensor, part.row_first * row_bytes + begin, read, row_bytes,
                      count * read, part, positions.Of(part.to.data), digested});
  }
}

}  // namespace

std::vector<ReadPiece> PlanReads(const Checkpoint& checkpoint,
                                 const std::vector<NeededTensor>& needed, const ModelConfig& config,
                                 RankShare rank, const ModelWeights& weights) {
  const Positions positions(weights);
  const NeededByName by_name = ByName(needed);
  std::vector<ReadPiece> pieces;
  int64_t filled = 0;
  for (const SafetensorsFile& file : checkpoint.files()) {
    for (const StoredTensor& tensor : file.tensors()) {
      const auto entry = by_name.find(tensor.name);
      if (entry == by_name.end()) continue;
      for (const WeightBlock& block : Place(*entry->second, config, rank, weights)) {
        Cut(file, tensor, block, !IsScale(entry->second->piece), positions, pieces);
        filled += block.to.bytes() + (block.scales == nullptr ? 0 : block.to.shape[0] * 4);
      }
    }
  }
  CHECK_EQ(filled, weights.bytes);  // the memory was not cleared: all of it must be written
  return pieces;
}

}  // namespace levin
