// Little-endian numbers into and out of a string of bytes. The reader never reads beyond the end:
// it remembers the first thing that was wrong and gives zeros from then on.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "common/base/status.h"

namespace levin {

class ByteWriter final {
 public:
  template <std::integral T>
  void Put(T value) {
    const auto bits = static_cast<std::make_unsigned_t<T>>(value);
    for (size_t i = 0; i < sizeof(T); ++i)
      bytes_.push_back(static_cast<char>(static_cast<uint64_t>(bits) >> (8 * i)));
  }
  void PutBool(bool value) { Put<uint8_t>(value ? 1 : 0); }
  void PutFloat(float value) { Put(std::bit_cast<uint32_t>(value)); }
  void PutCount(size_t count) { Put(static_cast<uint32_t>(count)); }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ByteReader final {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  template <std::integral T>
  T Get() {
    if (bytes_.size() - offset_ < sizeof(T)) {
      Fail("the bytes end early");
      return 0;
    }
    uint64_t bits = 0;
    for (size_t i = 0; i < sizeof(T); ++i)
      bits |= static_cast<uint64_t>(static_cast<uint8_t>(bytes_[offset_ + i])) << (8 * i);
    offset_ += sizeof(T);
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(bits));
  }
  bool GetBool() {
    const uint8_t value = Get<uint8_t>();
    if (value > 1) Fail("a flag is neither 0 nor 1");
    return value == 1;
  }
  float GetFloat() { return std::bit_cast<float>(Get<uint32_t>()); }
  // A count of things of at least `bytes_each`: never more than the bytes left can hold, so that
  // nobody allocates for a number that a stranger wrote.
  size_t GetCount(size_t bytes_each) {
    const uint32_t count = Get<uint32_t>();
    if (count > (bytes_.size() - offset_) / bytes_each) {
      Fail("a count of " + std::to_string(count) + " exceeds the bytes left");
      return 0;
    }
    return count;
  }

  void Fail(std::string what) {
    if (failed()) return;
    error_ = std::move(what) + " at offset " + std::to_string(offset_);
    offset_ = bytes_.size();
  }
  bool failed() const { return !error_.empty(); }
  bool at_end() const { return offset_ == bytes_.size(); }
  const std::string& error() const { return error_; }

 private:
  const std::string_view bytes_;
  size_t offset_ = 0;
  std::string error_;
};

}  // namespace levin
