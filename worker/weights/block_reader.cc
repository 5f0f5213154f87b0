#include "worker/weights/block_reader.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "worker/tensor/bf16.h"
#include "worker/weights/quantize.h"

namespace levin {
namespace {

constexpr int64_t kStagingBytes = int64_t{4} << 20;

int64_t Columns(const StoredTensor& tensor) {
  return tensor.shape.size() < 2 ? 1 : tensor.shape.back();
}

int64_t ElementBytes(const StoredTensor& tensor) {
  if (tensor.dtype == "F32") return 4;
  return tensor.dtype == "I8" ? 1 : 2;  // BF16, F16
}

// Exact: every half is a float.
float HalfToFloat(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const float sign = bits >> 15 ? -1.0f : 1.0f;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

template <typename T>
T Load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

void Widen(const std::byte* from, const StoredTensor& tensor, std::span<float> to) {
  for (size_t i = 0; i < to.size(); ++i) {
    if (tensor.dtype == "F32") {
      to[i] = Load<float>(from + 4 * i);
    } else {
      const uint16_t bits = Load<uint16_t>(from + 2 * i);
      to[i] = tensor.dtype == "F16" ? HalfToFloat(bits) : Bf16ToFloat(bits);
    }
  }
}

Status CheckFinite(const StoredTensor& tensor, int64_t row, float value) {
  if (std::isfinite(value)) return Status::Ok();
  return InvalidArgument("tensor '" + tensor.name + "' has an infinite value or a NaN in row " +
                         std::to_string(row) + ", expected finite numbers");
}

// One stored row, whole, into its place; `i` counts the block's rows.
Status ConvertRow(const StoredTensor& tensor, const WeightBlock& block, int64_t i,
                  const std::byte* row) {
  const int64_t count = block.to.shape[1];
  const std::byte* slice = row + block.column_first * ElementBytes(tensor);
  if (block.scales != nullptr) {
    const auto* values = reinterpret_cast<const uint16_t*>(row);
    const float scale = RowScaleInt8({values, static_cast<size_t>(Columns(tensor))});
    RETURN_IF_ERROR(CheckFinite(tensor, block.row_first + i, scale));
    block.scales[i] = scale;
    QuantizeInt8({values + block.column_first, static_cast<size_t>(count)}, scale,
                 {block.to.as<int8_t>() + i * count, static_cast<size_t>(count)});
    return Status::Ok();
  }
  if (block.to.dtype == DType::kF32) {
    const std::span<float> to(block.to.as<float>() + i * count, static_cast<size_t>(count));
    Widen(slice, tensor, to);
    for (float value : to) RETURN_IF_ERROR(CheckFinite(tensor, block.row_first + i, value));
    return Status::Ok();
  }
  std::memcpy(block.to.data + i * block.to.row_bytes(), slice,
              static_cast<size_t>(block.to.row_bytes()));
  return Status::Ok();
}

}  // namespace

int64_t BlockReader::BytesOf(const StoredTensor& tensor, const std::vector<WeightBlock>& blocks) {
  int64_t bytes = 0;
  for (const WeightBlock& block : blocks) {
    bytes += block.to.shape[0] * Columns(tensor) * ElementBytes(tensor);
  }
  return bytes;
}

Status BlockReader::Read(const RegularFile& file, const StoredTensor& tensor,
                         const std::vector<WeightBlock>& blocks) {
  for (const WeightBlock& block : blocks) RETURN_IF_ERROR(ReadBlock(file, tensor, block));
  return Status::Ok();
}

Status BlockReader::ReadBlock(const RegularFile& file, const StoredTensor& tensor,
                              const WeightBlock& block) {
  const int64_t row_bytes = Columns(tensor) * ElementBytes(tensor);
  const int64_t rows = block.to.shape[0];
  const bool as_stored =
      block.scales == nullptr && block.to.dtype != DType::kF32 && block.to.row_bytes() == row_bytes;
  const int64_t rows_per_read =
      std::max<int64_t>(1, kStagingBytes / std::max<int64_t>(row_bytes, 1));
  for (int64_t first = 0; first < rows; first += rows_per_read) {
    const int64_t count = std::min(rows_per_read, rows - first);
    const int64_t bytes = count * row_bytes;
    const int64_t offset = (block.row_first + first) * row_bytes;
    if (as_stored) {  // straight into place
      RETURN_IF_ERROR(SafetensorsFile::ReadFrom(
          file, tensor, offset,
          {block.to.data + first * row_bytes, static_cast<size_t>(bytes)}));
    } else {
      if (static_cast<int64_t>(staging_.size()) < bytes)
        staging_.resize(static_cast<size_t>(bytes));
      RETURN_IF_ERROR(SafetensorsFile::ReadFrom(
          file, tensor, offset, std::span(staging_).first(static_cast<size_t>(bytes))));
      for (int64_t i = 0; i < count; ++i) {
        RETURN_IF_ERROR(ConvertRow(tensor, block, first + i, staging_.data() + i * row_bytes));
      }
    }
    read_(bytes);
  }
  return Status::Ok();
}

}  // namespace levin
