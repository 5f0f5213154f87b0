// The CPU backend's threads: the caller and `threads - 1` others, which take part in one loop at a
// time. Between loops they spin briefly, then sleep: a rank that waits for work costs nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace levin {

// A worker that the system does not run just then is not waited for: the others take its pieces.
//
// Calls body(begin, end) on pieces of [0, count) that do not overlap, on all threads, and returns
// when all are done. Which thread gets which piece is not fixed: results must not depend on it.
class ThreadPool final {
 public:
  explicit ThreadPool(int threads);  // at least 1, the caller included
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // From one thread only, never from inside a body. Pieces hold at least `grain` items (the last
  // one may be shorter): below that a second thread costs more than it brings.
  template <typename Body>
  void ParallelFor(int64_t count, int64_t grain, const Body& body) {
    if (count <= 0) return;
    if (workers_.empty() || count <= grain) {
      body(int64_t{0}, count);
      return;
    }
    Run(count, grain, &body, [](const void* b, int64_t begin, int64_t end) {
      (*static_cast<const Body*>(b))(begin, end);
    });
  }

 private:
  using Call = void (*)(const void* body, int64_t begin, int64_t end);

  static constexpr uint32_t kOpen = 0x80000000u;

  void Run(int64_t count, int64_t grain, const void* body, Call call);
  void TakePieces();
  void Work();
  void JoinLoop();

  // The loop at hand: written while nobody is inside, read by those who are.
  const void* body_ = nullptr;
  Call call_ = nullptr;
  int64_t count_ = 0;
  int64_t piece_ = 0;

  alignas(64) std::atomic<uint32_t> job_{0};  // counts loops: workers sleep on it
  alignas(64) std::atomic<int64_t> next_{0};  // first item that nobody has taken
  alignas(64) std::atomic<uint32_t> inside_{
      0};  // workers in the loop at hand; kOpen: more may join
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace levin
