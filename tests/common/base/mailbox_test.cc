#include "common/base/mailbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace levin {
namespace {

using std::chrono::steady_clock;

steady_clock::time_point Soon() { return steady_clock::now() + std::chrono::seconds(10); }
constexpr steady_clock::time_point kPast{};

TEST(MailboxTest, GivesValuesBackInOrder) {
  Mailbox<int> mailbox(3);
  EXPECT_TRUE(mailbox.TryPush(1));
  EXPECT_TRUE(mailbox.TryPush(2));
  EXPECT_EQ(mailbox.size(), 2u);
  EXPECT_EQ(mailbox.PopUntil(kPast), 1);
  EXPECT_TRUE(mailbox.TryPush(3));
  EXPECT_THAT(mailbox.Drain(), ::testing::ElementsAre(2, 3));
  EXPECT_EQ(mailbox.size(), 0u);
}

TEST(MailboxTest, RefusesMoreThanItHolds) {
  Mailbox<int> mailbox(2);
  EXPECT_TRUE(mailbox.TryPush(1));
  EXPECT_TRUE(mailbox.TryPush(2));
  EXPECT_FALSE(mailbox.TryPush(3));
  EXPECT_EQ(mailbox.PopUntil(kPast), 1);
  EXPECT_TRUE(mailbox.TryPush(4));
}

TEST(MailboxTest, HoldsWhatCannotBeCopied) {
  Mailbox<std::unique_ptr<int>> mailbox(2);
  EXPECT_TRUE(mailbox.TryPush(std::make_unique<int>(7)));
  EXPECT_EQ(**mailbox.PopUntil(kPast), 7);
}

TEST(MailboxTest, EndsAWaitWhenTheTimeIsUp) {
  Mailbox<int> mailbox(1);
  EXPECT_EQ(mailbox.PopUntil(kPast), std::nullopt);
  mailbox.WaitUntil(kPast);
  EXPECT_EQ(mailbox.PopUntil(steady_clock::now() + std::chrono::milliseconds(1)), std::nullopt);
}

TEST(MailboxTest, ClosedItRefusesValuesAndStillGivesWhatItHas) {
  Mailbox<int> mailbox(2);
  EXPECT_TRUE(mailbox.TryPush(1));
  EXPECT_FALSE(mailbox.closed());
  mailbox.Close();
  EXPECT_TRUE(mailbox.closed());
  EXPECT_FALSE(mailbox.TryPush(2));
  EXPECT_EQ(mailbox.PopUntil(Soon()), 1);
  EXPECT_EQ(mailbox.PopUntil(Soon()), std::nullopt);
}

TEST(MailboxTest, ClosingWakesAllThatWait) {
  Mailbox<int> mailbox(1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(mailbox.PopUntil(Soon()), std::nullopt); });
    threads.emplace_back([&] { mailbox.WaitUntil(Soon()); });
  }
  mailbox.Close();
  for (std::thread& thread : threads) thread.join();
}

TEST(MailboxTest, LosesAndDoublesNothingBetweenThreads) {
  constexpr int kPerThread = 2000;
  Mailbox<int> mailbox(16);
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 3; ++writer) {
    writers.emplace_back([&mailbox, writer] {
      for (int i = 0; i < kPerThread; ++i) {
        while (!mailbox.TryPush(writer * kPerThread + i)) std::this_thread::yield();
      }
    });
  }
  std::vector<std::vector<int>> seen(2);
  std::vector<std::thread> readers;
  for (std::vector<int>& mine : seen) {
    readers.emplace_back([&mailbox, &mine] {
      while (std::optional<int> value = mailbox.PopUntil(Soon())) mine.push_back(*value);
    });
  }
  for (std::thread& thread : writers) thread.join();
  mailbox.Close();
  for (std::thread& thread : readers) thread.join();
  std::vector<bool> got(3 * kPerThread, false);
  for (const std::vector<int>& mine : seen) {
    std::vector<int> last(3, -1);
    for (const int value : mine) {
      EXPECT_FALSE(got[value]);
      got[value] = true;
      EXPECT_GT(value, last[value / kPerThread]) << "values of one writer out of order";
      last[value / kPerThread] = value;
    }
  }
  EXPECT_THAT(got, ::testing::Each(true));
}

}  // namespace
}  // namespace levin
