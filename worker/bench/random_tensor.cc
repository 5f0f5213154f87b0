#include "worker/bench/random_tensor.h"

#include <algorithm>
#include <cstring>

#include "worker/tensor/bf16.h"

namespace levin {
namespace {

// One number of the sequence: -1 to 1 with 24 bits.
float Next(uint64_t& seed) {
  seed = seed * 6364136223846793005ull + 1442695040888963407ull;
  return static_cast<float>(seed >> 40) * 0x1p-23f - 1.0f;
}

}  // namespace

OwnedTensor EmptyTensor(DType dtype, const Shape& shape) {
  OwnedTensor tensor{Buffer(dtype, shape), {}};
  tensor.view = tensor.memory.View(dtype, shape);
  return tensor;
}

OwnedTensor RandomTensor(DType dtype, const Shape& shape) {
  OwnedTensor tensor{std::move(Buffer::AllocateUnset(shape.elements() * ByteSize(dtype))).value(),
                     {}};
  tensor.view = tensor.memory.View(dtype, shape);
  // A length that no row divides; what follows is a copy.
  const int64_t fresh = std::min<int64_t>(shape.elements(), 1'000'003);
  uint64_t seed = 2026;
  for (int64_t i = 0; i < fresh; ++i) {
    const float value = Next(seed);
    if (dtype == DType::kF32) tensor.view.as<float>()[i] = value;
    if (dtype == DType::kBF16) tensor.view.as<uint16_t>()[i] = FloatToBf16(value);
    if (dtype == DType::kI8) tensor.view.as<int8_t>()[i] = static_cast<int8_t>(value * 127);
  }
  const int64_t bytes = tensor.view.bytes();
  for (int64_t done = fresh * ByteSize(dtype); done < bytes;) {
    const int64_t more = std::min(done, bytes - done);
    std::memcpy(tensor.view.data + done, tensor.view.data, static_cast<size_t>(more));
    done += more;
  }
  return tensor;
}

RandomMatrices MakeMatrices(Backend& backend, DType weights, int64_t rows, int64_t cols,
                            int64_t bytes, int64_t least) {
  const int64_t count = std::max(least, bytes / (rows * cols * ByteSize(weights)) + 1);
  RandomMatrices all;
  all.data = RandomTensor(weights, {count, rows * cols});
  if (weights == DType::kI8) all.scale = RandomTensor(DType::kF32, {rows});
  for (int64_t i = 0; i < count; ++i) {
    WeightMatrix matrix{all.data.view.Rows(i, 1), all.scale.view, rows, cols, false};
    matrix.data.shape = {rows, cols};
    backend.Pack(matrix);
    all.matrices.push_back(matrix);
  }
  return all;
}

}  // namespace levin
