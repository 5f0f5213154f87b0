#include "worker/backend/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <vector>

namespace levin {
namespace {

TEST(ThreadPoolTest, EveryItemIsVisitedOnceByLoopsOfAnySize) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    for (const int64_t count : {0, 1, 2, 13, 1000}) {
      for (const int64_t grain : {1, 5, 2000}) {
        std::vector<int> visits(count, 0);
        pool.ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) ++visits[i];
        });
        EXPECT_EQ(std::vector<int>(count, 1), visits) << threads << ' ' << count << ' ' << grain;
      }
    }
  }
}

// What one loop wrote the next one sees, whichever threads took part: run under TSan.
TEST(ThreadPoolTest, LoopsFollowOneAnother) {
  ThreadPool pool(4);
  std::vector<int64_t> from(64, 0), to(64, 0);
  for (int round = 0; round < 2000; ++round) {
    pool.ParallelFor(64, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = from[63 - i] + 1;
    });
    from.swap(to);
  }
  EXPECT_EQ(std::vector<int64_t>(64, 2000), from);
}

}  // namespace
}  // namespace levin
