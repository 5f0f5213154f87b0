#include "worker/backend/cpu/thread_pool.h"

#include <algorithm>

#include "common/base/check.h"

namespace levin {
namespace {

// Long enough for the serial stretch between two loops of a layer, short against a scheduler tick.
constexpr int kSpins = 2000;
// Smaller pieces even out threads that the system interrupts; larger ones stream better.
constexpr int64_t kPiecesPerThread = 4;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Returns once `word` no longer holds `value`.
void AwaitChange(const std::atomic<uint32_t>& word, uint32_t value) {
  for (int i = 0; i < kSpins; ++i) {
    if (word.load(std::memory_order_acquire) != value) return;
    Pause();
  }
  word.wait(value, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  CHECK_LE(1, threads);
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { Work(); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  job_.fetch_add(1, std::memory_order_release);
  job_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Run(int64_t count, int64_t grain, const void* body, Call call) {
  body_ = body;
  call_ = call;
  count_ = count;
  piece_ =
      std::max(grain, (count + threads() * kPiecesPerThread - 1) / (threads() * kPiecesPerThread));
  next_.store(0, std::memory_order_relaxed);
  inside_.store(kOpen, std::memory_order_release);
  job_.fetch_add(1, std::memory_order_release);
  job_.notify_all();
  TakePieces();
  uint32_t inside = inside_.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
  while (inside != 0) {
    AwaitChange(inside_, inside);
    inside = inside_.load(std::memory_order_acquire);
  }
}

void ThreadPool::TakePieces() {
  for (;;) {
    const int64_t begin = next_.fetch_add(piece_, std::memory_order_relaxed);
    if (begin >= count_) return;
    call_(body_, begin, std::min(begin + piece_, count_));
  }
}

void ThreadPool::JoinLoop() {
  uint32_t inside = inside_.load(std::memory_order_relaxed);
  do {
    if ((inside & kOpen) == 0) return;  // over before this thread came
  } while (!inside_.compare_exchange_weak(inside, inside + 1, std::memory_order_acq_rel));
  TakePieces();
  if (inside_.fetch_sub(1, std::memory_order_acq_rel) == 1) inside_.notify_one();
}

void ThreadPool::Work() {
  uint32_t seen = 0;
  for (;;) {
    AwaitChange(job_, seen);
    seen = job_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    JoinLoop();
  }
}

}  // namespace levin
