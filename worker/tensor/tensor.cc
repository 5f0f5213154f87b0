#include "worker/tensor/tensor.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

namespace levin {
namespace {

// At least one line, so that a view of no elements still has an address.
size_t SizeFor(int64_t bytes) {
  CHECK_LE(0, bytes);
  return bytes == 0 ? Buffer::kAlignment : static_cast<size_t>(bytes);
}

// Null when the machine has no such memory.
std::byte* AllocateRaw(int64_t bytes) {
  void* data = ::operator new(SizeFor(bytes), std::align_val_t(Buffer::kAlignment), std::nothrow);
  return static_cast<std::byte*>(data);
}

// Fewer faults while it is filled, fewer misses of the address cache ever after. A hint.
void WantHugePages(std::byte* data, int64_t bytes) {
  constexpr uintptr_t kHugePage = uintptr_t{2} << 20;
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t end = (begin + static_cast<uintptr_t>(bytes)) / kHugePage * kHugePage;
  if (first < end) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

std::byte* AllocateZeroed(int64_t bytes) {
  std::byte* data = AllocateRaw(bytes);
  if (data == nullptr) return nullptr;
  WantHugePages(data, bytes);
  std::memset(data, 0, SizeFor(bytes));
  return data;
}

}  // namespace

std::string_view Name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kBF16:
      return "BF16";
    case DType::kI8:
      return "I8";
    case DType::kI32:
      return "I32";
    case DType::kI64:
      return "I64";
    case DType::kU8:
      return "U8";
    case DType::kF64:
      return "F64";
  }
  return "?";
}

std::string ToString(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

TensorView TensorView::Rows(int64_t first, int64_t count) const {
  CHECK(shape.rank() > 0 && first >= 0 && count >= 0 && first <= shape[0] - count, first, count,
        ToString(shape));
  TensorView rows{dtype, shape, data + first * row_bytes()};
  switch (shape.rank()) {
    case 1:
      rows.shape = {count};
      break;
    case 2:
      rows.shape = {count, shape[1]};
      break;
    case 3:
      rows.shape = {count, shape[1], shape[2]};
      break;
    default:
      rows.shape = {count, shape[1], shape[2], shape[3]};
      break;
  }
  return rows;
}

Buffer::Buffer(int64_t bytes) : data_(AllocateZeroed(bytes)), bytes_(bytes) {
  CHECK(data_ != nullptr, "no memory for", bytes, "bytes");
}

Result<Buffer> Buffer::Allocate(int64_t bytes) {
  Buffer buffer;
  buffer.data_ = AllocateZeroed(bytes);
  if (buffer.data_ == nullptr) {
    return Error(ResourceExhausted("no memory for " + std::to_string(bytes) + " bytes"));
  }
  buffer.bytes_ = bytes;
  return buffer;
}

Result<Buffer> Buffer::AllocateUnset(int64_t bytes) {
  Buffer buffer;
  buffer.data_ = AllocateRaw(bytes);
  if (buffer.data_ == nullptr) {
    return Error(ResourceExhausted("no memory for " + std::to_string(bytes) + " bytes"));
  }
  buffer.bytes_ = bytes;
  WantHugePages(buffer.data_, bytes);
  return buffer;
}

Buffer::~Buffer() { ::operator delete(data_, std::align_val_t(kAlignment)); }

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

TensorView Buffer::View(DType dtype, const Shape& shape, int64_t byte_offset) const {
  const int64_t size = shape.elements() * ByteSize(dtype);
  CHECK(byte_offset >= 0 && byte_offset <= bytes_ && size <= bytes_ - byte_offset, byte_offset,
        size, bytes_);
  CHECK_EQ(byte_offset % ByteSize(dtype), 0);
  return {dtype, shape, data_ + byte_offset};
}

}  // namespace levin
