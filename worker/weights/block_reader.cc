#include "worker/weights/block_reader.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "worker/tensor/bf16.h"
#include "worker/weights/quantize.h"

namespace levin {
namespace {

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

void Widen(const std::byte* from, std::string_view dtype, std::span<float> to) {
  if (dtype == "F32") {
    std::memcpy(to.data(), from, to.size_bytes());
    return;
  }
  const bool half = dtype == "F16";
  for (size_t i = 0; i < to.size(); ++i) {
    const uint16_t bits = Load<uint16_t>(from + 2 * i);
    to[i] = half ? HalfToFloat(bits) : Bf16ToFloat(bits);
  }
}

Status CheckFinite(const StoredTensor& tensor, int64_t row, float value) {
  if (std::isfinite(value)) return Status::Ok();
  return InvalidArgument("tensor '" + tensor.name + "' has an infinite value or a NaN in row " +
                         std::to_string(row) + ", expected finite numbers");
}

// One stored row, whole, into its place; `i` counts the piece's rows.
Status ConvertRow(const StoredTensor& tensor, const WeightBlock& block, int64_t i,
                  const std::byte* row) {
  const int64_t count = block.to.shape[1];
  const std::byte* slice = row + block.column_first * ElementBytes(tensor);
  if (block.scales != nullptr) {
    const auto* values = reinterpret_cast<const uint16_t*>(row);
    const float scale = RowScaleInt8({values, static_cast<size_t>(tensor.shape.back())});
    RETURN_IF_ERROR(CheckFinite(tensor, block.row_first + i, scale));
    block.scales[i] = scale;
    QuantizeInt8({values + block.column_first, static_cast<size_t>(count)}, scale,
                 {block.to.as<int8_t>() + i * count, static_cast<size_t>(count)});
    return Status::Ok();
  }
  if (block.to.dtype == DType::kF32) {
    const std::span<float> to(block.to.as<float>() + i * count, static_cast<size_t>(count));
    Widen(slice, tensor.dtype, to);
    for (float value : to) RETURN_IF_ERROR(CheckFinite(tensor, block.row_first + i, value));
    return Status::Ok();
  }
  std::memcpy(block.to.data + i * block.to.row_bytes(), slice,
              static_cast<size_t>(block.to.row_bytes()));
  return Status::Ok();
}

// Straight into place, row by row.
Status ReadColumns(const RegularFile& file, const ReadPiece& piece) {
  std::byte* to = piece.block.to.data;
  for (int64_t done = 0; done < piece.bytes; done += piece.row_bytes) {
    const int64_t row = done / piece.row_bytes;
    RETURN_IF_ERROR(SafetensorsFile::ReadFrom(file, *piece.tensor,
                                              piece.offset + row * piece.row_stride,
                                              {to + done, static_cast<size_t>(piece.row_bytes)}));
  }
  return Status::Ok();
}

}  // namespace

Status BlockReader::Read(const RegularFile& file, const ReadPiece& piece) {
  const WeightBlock& block = piece.block;
  const int64_t rows = block.to.shape[0];
  if (rows == 0) return Status::Ok();
  const int64_t row_bytes = piece.row_bytes;
  if (piece.strided()) return ReadColumns(file, piece);
  if (block.scales == nullptr && block.to.dtype != DType::kF32 &&
      block.to.row_bytes() == row_bytes) {  // as stored: straight into place
    return SafetensorsFile::ReadFrom(file, *piece.tensor, piece.offset, block.to.span());
  }
  if (staging_.bytes() < piece.bytes) {
    ASSIGN_OR_RETURN_STATUS(staging_, Buffer::Allocate(piece.bytes));
  }
  RETURN_IF_ERROR(SafetensorsFile::ReadFrom(file, *piece.tensor, piece.offset,
                                            {staging_.data(), static_cast<size_t>(piece.bytes)}));
  for (int64_t i = 0; i < rows; ++i) {
    RETURN_IF_ERROR(ConvertRow(*piece.tensor, block, i, staging_.data() + i * row_bytes));
  }
  return Status::Ok();
}

}  // namespace levin
