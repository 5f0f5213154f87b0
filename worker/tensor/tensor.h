// Words for memory: what an element is, how many there are in each direction, where they lie.
// All sizes and offsets are 64 bit (a pool passes 2^31 elements early). Nothing here knows devices:
// `data` may be memory that only a backend can read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/base/status.h"

namespace levin {

enum class DType : uint8_t { kF32, kBF16, kI8, kI32, kI64, kU8, kF64 };

constexpr int64_t ByteSize(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 4;
    case DType::kBF16:
      return 2;
    case DType::kI8:
      return 1;
    case DType::kI32:
      return 4;
    case DType::kI64:
      return 8;
    case DType::kU8:
      return 1;
    case DType::kF64:
      return 8;
  }
  return 0;
}
std::string_view Name(DType dtype);  // "F32", "BF16", ...: as safetensors spells them

// Up to four dimensions, row-major, the last one contiguous. A shape of rank 0 has no elements: it
// is the shape of a tensor that is not there.
class Shape final {
 public:
  static constexpr int kMaxRank = 4;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) {
    CHECK_LE(dims.size(), static_cast<size_t>(kMaxRank));
    for (int64_t dim : dims) {
      CHECK_LE(0, dim);
      dims_[rank_++] = dim;
    }
  }

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return dims_[i]; }
  int64_t elements() const {
    int64_t product = rank_ == 0 ? 0 : 1;
    for (int i = 0; i < rank_; ++i) product *= dims_[i];
    return product;
  }
  // Elements behind one step of the first dimension: the length of a row of a matrix.
  int64_t row_elements() const {
    int64_t product = rank_ == 0 ? 0 : 1;
    for (int i = 1; i < rank_; ++i) product *= dims_[i];
    return product;
  }
  bool operator==(const Shape&) const = default;

 private:
  std::array<int64_t, kMaxRank> dims_{};  // unused ones are 0, so that == may compare all
  int rank_ = 0;
};
std::string ToString(const Shape& shape);  // "[4096, 1024]"

// Points into memory that somebody else owns and keeps alive. Contiguous. A default view is "no
// tensor": data null, rank 0.
struct TensorView {
  DType dtype = DType::kF32;
  Shape shape;
  std::byte* data = nullptr;

  explicit operator bool() const { return data != nullptr; }
  int64_t elements() const { return shape.elements(); }
  int64_t bytes() const { return shape.elements() * ByteSize(dtype); }
  int64_t row_bytes() const { return shape.row_elements() * ByteSize(dtype); }
  std::span<std::byte> span() const { return {data, static_cast<size_t>(bytes())}; }

  // T must have the element's size: uint16_t for bf16.
  template <typename T>
  T* as() const {
    CHECK_EQ(static_cast<int64_t>(sizeof(T)), ByteSize(dtype));
    return reinterpret_cast<T*>(data);
  }
  // Rows [first, first + count) of the first dimension.
  TensorView Rows(int64_t first, int64_t count) const;
};

// Owns memory, zeroed unless asked otherwise, aligned to 64 bytes (a cache line, the widest
// vector); large ones ask for huge pages. Move only.
class Buffer final {
 public:
  static constexpr size_t kAlignment = 64;

  Buffer() = default;
  // Aborts when the machine has no such memory; where its size comes from outside, use Allocate.
  explicit Buffer(int64_t bytes);
  Buffer(DType dtype, const Shape& shape) : Buffer(shape.elements() * ByteSize(dtype)) {}
  // kResourceExhausted instead.
  static Result<Buffer> Allocate(int64_t bytes);
  // The same without the zeros, for memory that is written as a whole before anybody reads it.
  static Result<Buffer> AllocateUnset(int64_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept : data_(other.data_), bytes_(other.bytes_) {
    other.data_ = nullptr;
    other.bytes_ = 0;
  }
  Buffer& operator=(Buffer&& other) noexcept;

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  // The whole or a part of it as a tensor; the offset in bytes must keep the element's alignment.
  TensorView View(DType dtype, const Shape& shape, int64_t byte_offset = 0) const;

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace levin
