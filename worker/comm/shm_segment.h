// The shared memory itself: layout, creation, mapping. Nothing here waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace levin {

// One line per rank. `arrivals` counts the barriers that the rank has reached; `bell` changes with
// each arrival and with an abort, so a sleeper on it misses neither.
struct alignas(64) RankLine {
  std::atomic<uint32_t> arrivals;
  std::atomic<uint32_t> bell;
  std::atomic<uint32_t> sleepers;
};

struct alignas(64) ShmHeader {
  uint64_t magic;
  int64_t slot_bytes;
  int32_t ranks;
  std::atomic<uint32_t> aborted_by;  // 0: nobody, else rank + 1
};

// Move only; unmaps at the end, and unlinks the name if that has not been done.
class ShmSegment final {
 public:
  static Result<ShmSegment> Create(const std::string& name, int ranks, int64_t slot_bytes);
  static Result<ShmSegment> Open(const std::string& name, int ranks, int64_t slot_bytes);
  ~ShmSegment();
  ShmSegment(ShmSegment&& other) noexcept;
  ShmSegment& operator=(ShmSegment&&) = delete;

  void Unlink();

  ShmHeader& header() const { return *reinterpret_cast<ShmHeader*>(base_); }
  RankLine& line(int rank) const;
  std::byte* slot(int rank, int parity) const;  // slot_bytes, what the rank gives
  std::byte* result(int parity) const;          // slot_bytes, the sum of all

 private:
  ShmSegment(std::string name, std::byte* base, int64_t bytes, bool linked)
      : name_(std::move(name)), base_(base), bytes_(bytes), linked_(linked) {}

  std::string name_;
  std::byte* base_ = nullptr;
  int64_t bytes_ = 0;
  bool linked_ = false;  // this object made the name and must remove it
};

}  // namespace levin
