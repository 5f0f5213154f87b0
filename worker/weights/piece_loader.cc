#include "worker/weights/piece_loader.h"

#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "worker/weights/block_reader.h"

namespace levin {
namespace {

// What the threads share; protects itself.
class Work final {
 public:
  explicit Work(std::span<const ReadPiece> pieces) : pieces_(pieces) {
    for (const ReadPiece& piece : pieces) total_ += piece.bytes;
  }

  std::span<const ReadPiece> pieces() const { return pieces_; }
  int64_t total() const { return total_; }
  int64_t done() const { return done_; }

  // The next piece in order; nullopt when there is none or somebody failed.
  std::optional<size_t> Take() {
    if (failed_) return std::nullopt;
    const size_t piece = next_.fetch_add(1);
    return piece < pieces_.size() ? std::optional(piece) : std::nullopt;
  }
  void Done(int64_t bytes, uint64_t digest) {
    digest_ += digest;
    done_ += bytes;
  }
  // Every piece before a failed one was taken, so the earliest error does not depend on chance.
  void Fail(size_t piece, Status status) {
    failed_ = true;
    const MutexLock lock(mutex_);
    if (piece >= failed_piece_) return;
    failed_piece_ = piece;
    error_ = std::move(status);
  }
  // When all threads have ended.
  Result<uint64_t> Outcome() {
    const MutexLock lock(mutex_);
    if (failed_) return Error(error_);
    return digest_.load();
  }

 private:
  const std::span<const ReadPiece> pieces_;
  int64_t total_ = 0;
  std::atomic<size_t> next_ = 0;
  std::atomic<int64_t> done_ = 0;
  std::atomic<uint64_t> digest_ = 0;
  std::atomic<bool> failed_ = false;
  Mutex mutex_;
  size_t failed_piece_ GUARDED_BY(mutex_) = SIZE_MAX;
  Status error_ GUARDED_BY(mutex_);
};

uint64_t DigestOf(const ReadPiece& piece) {
  if (!piece.digested) return 0;
  const TensorView& to = piece.block.to;
  return XXH3_64bits_withSeed(to.data, static_cast<size_t>(to.bytes()),
                              static_cast<uint64_t>(piece.position));
}

// One thread's part.
class Loader final {
 public:
  Loader(Work& work, int threads) : work_(work), ahead_(static_cast<size_t>(threads)) {}

  // After each piece calls `loaded`.
  template <typename Loaded>
  void Run(Loaded loaded) {
    while (const std::optional<size_t> piece = work_.Take()) {
      if (Status status = Load(*piece); !status.ok()) return work_.Fail(*piece, std::move(status));
      loaded();
    }
  }

 private:
  Status Load(size_t index) {
    const ReadPiece& piece = work_.pieces()[index];
    if (piece.file != open_) {
      ASSIGN_OR_RETURN_STATUS(data_, piece.file->OpenData());
      open_ = piece.file;
    }
    // The disk works on what comes when every thread has had its turn.
    if (index + ahead_ < work_.pieces().size()) {
      const ReadPiece& later = work_.pieces()[index + ahead_];
      if (later.file == open_)
        data_->WillRead(later.tensor->data_begin + later.offset, later.extent());
    }
    RETURN_IF_ERROR(reader_.Read(*data_, piece));
    work_.Done(piece.bytes, DigestOf(piece));
    return Status::Ok();
  }

  Work& work_;
  const size_t ahead_;
  BlockReader reader_;
  const SafetensorsFile* open_ = nullptr;
  std::optional<RegularFile> data_;
};

// Joins what it started, however the function that holds it ends.
class Helpers final {
 public:
  ~Helpers() {
    for (std::thread& thread : threads_) thread.join();
  }
  // A machine that has no more threads loads with fewer.
  template <typename Body>
  void Start(int count, Body body) {
    threads_.reserve(static_cast<size_t>(std::max(count, 0)));
    try {
      for (int i = 0; i < count; ++i) threads_.emplace_back(body);
    } catch (const std::system_error&) {
    }
  }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace

Result<uint64_t> LoadPieces(std::span<const ReadPiece> pieces, int threads,
                            const std::function<void(int64_t, int64_t)>& progress) {
  Work work(pieces);
  int64_t shown = 0;
  const auto show = [&] {
    const int64_t done = work.done();
    if (!progress || done <= shown) return;
    shown = done;
    progress(done, work.total());
  };
  {
    Helpers helpers;
    helpers.Start(threads - 1, [&work, threads] { Loader(work, threads).Run([] {}); });
    Loader(work, threads).Run(show);
  }
  Result<uint64_t> outcome = work.Outcome();
  if (outcome) show();  // what others loaded last
  return outcome;
}

}  // namespace levin
