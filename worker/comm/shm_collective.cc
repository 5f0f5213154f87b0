#include "worker/comm/shm_collective.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/base/mutex.h"
#include "worker/comm/futex.h"
#include "worker/comm/shm_segment.h"

namespace levin {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr size_t kOneShotFloats = 8192;  // 32 KB

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

int UsableCores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

// How long to stay awake before sleeping. Spinning past the cores costs whole scheduler ticks.
struct WaitPolicy {
  int pauses;
  int yields;
};
WaitPolicy ChooseWait(int ranks, int cores) {
  return ranks <= cores ? WaitPolicy{2000, 0} : WaitPolicy{40, 100};
}

class Impl final : public ShmCollective {
 public:
  Impl(ShmSegment segment, int rank, const ShmOptions& options)
      : segment_(std::move(segment)),
        rank_(rank),
        ranks_(segment_.header().ranks),
        options_(options),
        wait_(ChooseWait(ranks_, options.cores > 0 ? options.cores : UsableCores())) {}

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  Status Rendezvous(milliseconds time_limit) override {
    Status met = Barrier(time_limit);
    segment_.Unlink();  // only the leader's segment has a name to remove
    return met;
  }

  Status AllReduceSum(std::span<float> values) override {
    if (values.empty()) return AbortStatus();
    const size_t piece_floats = static_cast<size_t>(options_.slot_bytes) / sizeof(float);
    do {
      const std::span<float> piece = values.first(std::min(values.size(), piece_floats));
      RETURN_IF_ERROR(piece.size() <= kOneShotFloats ? SumSmall(piece) : SumLarge(piece));
      values = values.subspan(piece.size());
    } while (!values.empty());
    return Status::Ok();
  }

  Status AllGather(std::span<const std::byte> in, std::span<std::byte> out) override {
    CHECK_EQ(out.size(), in.size() * ranks_);
    if (in.empty()) return AbortStatus();
    size_t done = 0;
    do {
      const size_t piece = std::min(in.size() - done, static_cast<size_t>(options_.slot_bytes));
      const int parity = NextParity();
      std::memcpy(segment_.slot(rank_, parity), in.data() + done, piece);
      RETURN_IF_ERROR(Barrier(options_.time_limit));
      for (int r = 0; r < ranks_; ++r) {
        std::memcpy(out.data() + r * in.size() + done, segment_.slot(r, parity), piece);
      }
      done += piece;
    } while (done < in.size());
    return Status::Ok();
  }

  void Abort(std::string_view reason) override {
    {
      MutexLock lock(reason_mutex_);
      if (reason_.empty()) reason_ = reason;
    }
    uint32_t nobody = 0;
    segment_.header().aborted_by.compare_exchange_strong(nobody, rank_ + 1);
    for (int r = 0; r < ranks_; ++r) {
      segment_.line(r).bell.fetch_add(1);
      FutexWakeAll(segment_.line(r).bell);
    }
  }

 private:
  int NextParity() { return static_cast<int>(buffers_used_++ & 1); }
  float* Slot(int rank, int parity) const {
    return reinterpret_cast<float*>(segment_.slot(rank, parity));
  }

  // out[first, first + count) = slot 0 + slot 1 + ..., in this order.
  void SumSlots(int parity, size_t first, size_t count, float* out) const {
    std::memcpy(out, Slot(0, parity) + first, count * sizeof(float));
    for (int r = 1; r < ranks_; ++r) {
      const float* other = Slot(r, parity) + first;
      for (size_t i = 0; i < count; ++i) out[i] += other[i];
    }
  }

  Status SumSmall(std::span<float> piece) {
    const int parity = NextParity();
    std::memcpy(Slot(rank_, parity), piece.data(), piece.size_bytes());
    RETURN_IF_ERROR(Barrier(options_.time_limit));
    SumSlots(parity, 0, piece.size(), piece.data());
    return Status::Ok();
  }

  Status SumLarge(std::span<float> piece) {
    const int parity = NextParity();
    auto* result = reinterpret_cast<float*>(segment_.result(parity));
    std::memcpy(Slot(rank_, parity), piece.data(), piece.size_bytes());
    RETURN_IF_ERROR(Barrier(options_.time_limit));
    const size_t first = piece.size() * rank_ / ranks_;
    const size_t end = piece.size() * (rank_ + 1) / ranks_;
    SumSlots(parity, first, end - first, result + first);
    RETURN_IF_ERROR(Barrier(options_.time_limit));
    std::memcpy(piece.data(), result, piece.size_bytes());
    return Status::Ok();
  }

  Status Barrier(milliseconds time_limit) {
    RankLine& mine = segment_.line(rank_);
    const uint32_t meeting = mine.arrivals.load(std::memory_order_relaxed) + 1;
    mine.arrivals.store(meeting);
    mine.bell.fetch_add(1);
    if (mine.sleepers.load() != 0) FutexWakeAll(mine.bell);
    for (int r = 0; r < ranks_; ++r) RETURN_IF_ERROR(Await(r, meeting, time_limit));
    return AbortStatus();
  }

  Status Await(int rank, uint32_t meeting, milliseconds time_limit) {
    RankLine& line = segment_.line(rank);
    const auto arrived = [&] {
      return static_cast<int32_t>(line.arrivals.load(std::memory_order_acquire) - meeting) >= 0;
    };
    for (int i = 0; i < wait_.pauses; ++i) {
      if (arrived()) return Status::Ok();
      Pause();
    }
    for (int i = 0; i < wait_.yields; ++i) {
      if (arrived()) return Status::Ok();
      sched_yield();
    }
    const auto deadline = steady_clock::now() + time_limit;
    while (!arrived()) {
      // The bell is read before what it announces: an arrival or abort after this line changes it
      // and the futex does not sleep.
      line.sleepers.fetch_add(1);
      const uint32_t bell = line.bell.load();
      Status status = AbortStatus();
      const nanoseconds left = deadline - steady_clock::now();
      if (status.ok() && !arrived() && left.count() > 0) FutexWait(line.bell, bell, left);
      line.sleepers.fetch_sub(1);
      RETURN_IF_ERROR(status);
      if (left.count() <= 0 && !arrived()) {
        Abort("rank " + std::to_string(rank) + " did not come to a collective within " +
              std::to_string(time_limit.count()) + " ms");
      }
    }
    return Status::Ok();
  }

  Status AbortStatus() {
    const uint32_t by = segment_.header().aborted_by.load(std::memory_order_relaxed);
    if (by == 0) [[likely]]
      return Status::Ok();
    MutexLock lock(reason_mutex_);
    if (!reason_.empty()) return Unavailable(reason_);
    return Unavailable("collective aborted by rank " + std::to_string(by - 1));
  }

  ShmSegment segment_;
  const int rank_;
  const int ranks_;
  const ShmOptions options_;
  const WaitPolicy wait_;
  uint64_t buffers_used_ = 0;
  Mutex reason_mutex_;
  std::string reason_ GUARDED_BY(reason_mutex_);
};

}  // namespace

Result<std::unique_ptr<ShmCollective>> ShmCollective::Create(const std::string& name, int ranks,
                                                             const ShmOptions& options) {
  CHECK(ranks > 0 && options.slot_bytes > 0 && options.slot_bytes % 64 == 0, ranks,
        options.slot_bytes);
  ASSIGN_OR_RETURN(ShmSegment segment, ShmSegment::Create(name, ranks, options.slot_bytes));
  return std::make_unique<Impl>(std::move(segment), 0, options);
}

Result<std::unique_ptr<ShmCollective>> ShmCollective::Open(const std::string& name, int rank,
                                                           int ranks, const ShmOptions& options) {
  CHECK(rank > 0 && rank < ranks, rank, ranks);
  ASSIGN_OR_RETURN(ShmSegment segment, ShmSegment::Open(name, ranks, options.slot_bytes));
  return std::make_unique<Impl>(std::move(segment), rank, options);
}

}  // namespace levin
