// Leader and followers on threads of their own, as in the real processes, with queues for links:
// what the thread sanitizer looks at.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "tests/worker/engine/local_group.h"
#include "tests/worker/engine/wires.h"
#include "worker/engine/engine.h"
#include "worker/engine/follower.h"

namespace levin {
namespace {

using testing::LimitsOf;
using testing::ScriptedModel;
using testing::Wire;
using testing::WireToFollowers;
using testing::WireToLeader;

struct FollowerProcess {
  FollowerProcess(const SchedulerOptions& options, Wire& wire)
      : model(options.slots, options.blocks, options.block_tokens, options.vocab_size),
        executor(LimitsOf(options), model, {}),
        link(wire),
        follower(executor, link),
        thread([this] { status = follower.Run(); }) {}

  ScriptedModel model;
  RankExecutor executor;
  WireToLeader link;
  Follower follower;
  Status status;
  std::thread thread;
};

// Events land on the engine thread and are read when it has ended.
TEST(GroupThreadsTest, ThreeRanksServeCommandsFromTwoThreadsAndEndInOrder) {
  SchedulerOptions options;
  options.max_num_seqs = options.slots = 4;
  options.blocks = 32;
  options.max_model_len = 512;
  options.vocab_size = 32;
  std::vector<std::unique_ptr<Wire>> wires;
  std::vector<std::unique_ptr<FollowerProcess>> followers;
  for (int i = 0; i < 2; ++i) {
    wires.push_back(std::make_unique<Wire>());
    followers.push_back(std::make_unique<FollowerProcess>(options, *wires.back()));
  }
  ScriptedModel model(options.slots, options.blocks, options.block_tokens, options.vocab_size);
  RankExecutor executor(LimitsOf(options), model, {});
  WireToFollowers link(wires);
  testing::RecordingOutbox outbox;
  Mailbox<RouterCommand> inbox(1024);
  SystemClock clock;
  Engine engine(EngineOptions{}, Scheduler(options), executor, &link, outbox, inbox, clock);
  Status status;
  std::thread leader([&] { status = engine.Run(); });

  constexpr uint64_t kPerRouter = 25;
  const auto route = [&](uint32_t router) {
    for (uint64_t i = 1; i <= kPerRouter; ++i) {
      Generation generation;
      generation.ordinal = i;
      generation.request_id = std::to_string(router) + "." + std::to_string(i);
      generation.prompt.assign(1 + i * 3, static_cast<TokenId>(i));
      generation.max_new_tokens = 20;
      EXPECT_TRUE(inbox.TryPush({router, SubmitCommand{generation}}));
      if (i % 5 == 0) {
        EXPECT_TRUE(inbox.TryPush({router, CancelCommand{.ordinal = i - 1, .attempt = 1}}));
      }
      EXPECT_LE(engine.progress().done, engine.progress().begun + 1);  // as a heartbeat reads them
    }
  };
  std::thread one(route, 1), two(route, 2);
  one.join();
  two.join();
  inbox.Close();
  leader.join();
  for (auto& wire : wires) wire->plans.Close();
  for (auto& follower : followers) {
    follower->thread.join();
    EXPECT_TRUE(follower->status.ok()) << follower->status.message();
    EXPECT_EQ(follower->executor.table().size(), 0u);
    EXPECT_EQ(follower->follower.progress().done, engine.progress().done);
  }
  EXPECT_TRUE(status.ok()) << status.message();
  uint64_t ended = 0;
  for (const RouterEvent& event : outbox.events)
    ended += std::holds_alternative<FinishedEvent>(event.what);
  EXPECT_EQ(ended, 2 * kPerRouter);
}

}  // namespace
}  // namespace levin
