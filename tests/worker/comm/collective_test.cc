// One contract for every collective: threads of one process, and shared memory (each rank with a
// mapping of its own).
#include "worker/comm/collective.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "worker/comm/local_collective.h"
#include "worker/comm/shm_collective.h"

namespace levin {
namespace {

using std::chrono::milliseconds;

std::string NewName() {
  static std::atomic<int> count{0};
  return "/levin-test-" + std::to_string(getpid()) + "-" + std::to_string(++count);
}

using Group = std::vector<std::unique_ptr<Collective>>;
using MakeGroup = Group (*)(int ranks, milliseconds time_limit);

Group MakeShm(int ranks, milliseconds time_limit) {
  ShmOptions options;
  options.time_limit = time_limit;
  options.slot_bytes = 96 * 1024;  // so that tests pass all three sizes: one shot, one piece, many
  const std::string name = NewName();
  std::vector<std::unique_ptr<ShmCollective>> all;
  all.push_back(std::move(ShmCollective::Create(name, ranks, options)).value());
  for (int r = 1; r < ranks; ++r) {
    all.push_back(std::move(ShmCollective::Open(name, r, ranks, options)).value());
  }
  std::vector<std::thread> threads;
  for (auto& one : all) {
    threads.emplace_back([&] { EXPECT_TRUE(one->Rendezvous(std::chrono::seconds(20)).ok()); });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(-1, shm_unlink(name.c_str())) << "the name outlives the rendezvous";
  Group group;
  for (auto& one : all) group.push_back(std::move(one));
  return group;
}

Group MakeLocal(int ranks, milliseconds time_limit) {
  return MakeLocalCollectives(ranks, time_limit);
}

void OnAllRanks(Group& group, const std::function<void(Collective&)>& body) {
  std::vector<std::thread> threads;
  for (auto& one : group) threads.emplace_back([&] { body(*one); });
  for (auto& thread : threads) thread.join();
}

class CollectiveTest : public ::testing::TestWithParam<MakeGroup> {};

// Numbers whose sum depends on the order of the additions.
float Value(int rank, int64_t i) {
  const float size[4] = {1e8f, 1.0f, -1e8f, 0.3f};
  return size[(rank + i) % 4] + static_cast<float>(i % 97) * 0.01f;
}

TEST_P(CollectiveTest, SumsAreTakenInRankOrderWhateverTheSize) {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    Group group = GetParam()(ranks, std::chrono::seconds(20));
    OnAllRanks(group, [&](Collective& one) {
      for (const int64_t size : {0, 1, 7, 8192, 8193, 24576, 60000, 3}) {
        std::vector<float> values(size), expected(size);
        for (int64_t i = 0; i < size; ++i) {
          values[i] = Value(one.rank(), i);
          expected[i] = Value(0, i);
          for (int r = 1; r < ranks; ++r) expected[i] += Value(r, i);
        }
        ASSERT_TRUE(one.AllReduceSum(values).ok());
        ASSERT_TRUE(std::equal(values.begin(), values.end(), expected.begin()))
            << ranks << " ranks, " << size << " floats, rank " << one.rank();
      }
    });
  }
}

TEST_P(CollectiveTest, GatheringPutsTheRanksSideBySide) {
  for (const int ranks : {1, 2, 3, 8}) {
    Group group = GetParam()(ranks, std::chrono::seconds(20));
    OnAllRanks(group, [&](Collective& one) {
      for (const size_t size : {size_t{0}, size_t{1}, size_t{1000}, size_t{300'001}}) {
        std::vector<std::byte> in(size), out(size * ranks), expected;
        for (int r = 0; r < ranks; ++r) {
          for (size_t i = 0; i < size; ++i) {
            expected.push_back(static_cast<std::byte>(r * 31 + i % 251));
            if (r == one.rank()) in[i] = expected.back();
          }
        }
        ASSERT_TRUE(one.AllGather(in, out).ok());
        ASSERT_EQ(expected, out) << ranks << ' ' << size;
      }
    });
  }
}

TEST_P(CollectiveTest, ManySmallSumsInARowStayInStep) {
  Group group = GetParam()(4, std::chrono::seconds(20));
  OnAllRanks(group, [](Collective& one) {
    for (int i = 0; i < 500; ++i) {
      float value = static_cast<float>(one.rank() + i);
      ASSERT_TRUE(one.AllReduceSum({&value, 1}).ok());
      ASSERT_EQ(static_cast<float>(6 + 4 * i), value);
    }
  });
}

TEST_P(CollectiveTest, ARankThatDoesNotComeIsNamed) {
  Group group = GetParam()(3, milliseconds(100));
  std::vector<std::thread> threads;
  for (int r : {0, 2}) {
    threads.emplace_back([&, r] {
      float value = 1;
      const Status status = group[r]->AllReduceSum({&value, 1});
      EXPECT_EQ(Code::kUnavailable, status.code());
      const bool named = status.message().find("rank 1 did not come") != std::string::npos;
      const bool told = status.message().find("aborted by rank") != std::string::npos;
      EXPECT_TRUE(named || told) << status.message();
    });
  }
  for (auto& thread : threads) thread.join();
  float value = 1;
  EXPECT_FALSE(group[1]->AllReduceSum({&value, 1}).ok()) << "the late rank must not go on alone";
}

TEST_P(CollectiveTest, AnAbortWakesThoseWhoWait) {
  Group group = GetParam()(3, std::chrono::minutes(10));
  std::vector<std::thread> threads;
  for (int r : {1, 2}) {
    threads.emplace_back([&, r] {
      float value = 1;
      const Status status = group[r]->AllReduceSum({&value, 1});
      EXPECT_NE(std::string::npos, status.message().find("aborted by rank 0")) << status.message();
    });
  }
  group[0]->Abort("the device is lost");
  for (auto& thread : threads) thread.join();
  float value = 1;
  EXPECT_EQ("the device is lost", group[0]->AllReduceSum({&value, 1}).message());
}

INSTANTIATE_TEST_SUITE_P(Kinds, CollectiveTest, ::testing::Values(&MakeLocal, &MakeShm),
                         [](const ::testing::TestParamInfo<MakeGroup>& info) {
                           return info.param == &MakeLocal ? "local" : "shm";
                         });

TEST(ShmCollectiveTest, AStrangersSegmentIsRefused) {
  const std::string name = NewName();
  ShmOptions options;
  EXPECT_EQ(Code::kNotFound, ShmCollective::Open(name, 1, 2, options).error().code());
  const auto leader = ShmCollective::Create(name, 2, options);
  ASSERT_TRUE(leader.has_value());
  EXPECT_EQ(Code::kFailedPrecondition, ShmCollective::Open(name, 1, 3, options).error().code());
  EXPECT_FALSE(ShmCollective::Create(name, 2, options).has_value()) << "the name is taken";
}

TEST(ShmCollectiveTest, TheNameIsGoneWhenTheLeaderFailsBeforeTheRendezvous) {
  const std::string name = NewName();
  { ASSERT_TRUE(ShmCollective::Create(name, 2, {}).has_value()); }
  EXPECT_EQ(-1, shm_unlink(name.c_str()));
}

// Two processes: the futex must reach the other one.
TEST(ShmCollectiveTest, ProcessesWakeEachOther) {
  const std::string name = NewName();
  ShmOptions options;
  options.cores = 1;  // sleep early
  auto leader = std::move(ShmCollective::Create(name, 2, options)).value();
  const pid_t child = fork();
  if (child == 0) {
    auto other = ShmCollective::Open(name, 1, 2, options);
    bool good = other.has_value() && (*other)->Rendezvous(std::chrono::seconds(20)).ok();
    for (int i = 0; i < 200 && good; ++i) {
      float value = 2;
      good = (*other)->AllReduceSum({&value, 1}).ok() && value == 3;
      if (i % 50 == 0) usleep(2000);  // long enough for the other side to be asleep
    }
    _exit(good ? 0 : 1);
  }
  EXPECT_TRUE(leader->Rendezvous(std::chrono::seconds(20)).ok());
  for (int i = 0; i < 200; ++i) {
    float value = 1;
    ASSERT_TRUE(leader->AllReduceSum({&value, 1}).ok());
    ASSERT_EQ(3, value);
  }
  int result = 0;
  waitpid(child, &result, 0);
  EXPECT_EQ(0, result);
}

}  // namespace
}  // namespace levin
