// Read bandwidth of this machine at this moment: N threads, each summing its own part of a buffer
// far larger than the caches. Prints one number, GB/s (1e9 bytes), the best of five rounds.
//   roof [threads] [megabytes]
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  const size_t megabytes = argc > 2 ? static_cast<size_t>(std::max(1, std::atoi(argv[2]))) : 512;
  const size_t words = megabytes * 1'000'000 / sizeof(uint64_t) / threads * threads;
  std::vector<uint64_t> buffer(words, 1);
  std::vector<uint64_t> sums(threads);
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> workers;
    for (int t = 0; t < threads; ++t) {
      workers.emplace_back([&, t] {
        const uint64_t* first = buffer.data() + words / threads * t;
        uint64_t lanes[16] = {};  // independent sums, so that adding never waits
        for (size_t i = 0; i + 16 <= words / threads; i += 16) {
          for (int lane = 0; lane < 16; ++lane) lanes[lane] += first[i + lane];
        }
        for (uint64_t lane : lanes) sums[t] += lane;
      });
    }
    for (std::thread& worker : workers) worker.join();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    best = std::max(best, static_cast<double>(words * sizeof(uint64_t)) / took.count() / 1e9);
  }
  uint64_t total = 0;
  for (uint64_t sum : sums) total += sum;
  if (total == 0) return 1;  // the sums are used: the loop cannot be left out
  std::printf("%.1f\n", best);
  return 0;
}
