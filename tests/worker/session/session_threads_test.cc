#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <thread>

#include "common/rpc/limits.h"
#include "worker/session/session_hub.h"

namespace levin {
namespace {

// A wire on its own thread: takes each frame and reports it written, as gRPC does.
class Wire final : public SessionDoor {
 public:
  ~Wire() override { Stop(); }
  void Attach(std::shared_ptr<Session> session) {
    thread_ = std::thread([this, session] {
      while (frames_.PopUntil(TimePoint::max())) session->OnWriteDone(true);
    });
  }
  void Stop() {
    frames_.Close();
    if (thread_.joinable()) thread_.join();
  }
  void StartWrite(const OutFrame& frame) override {
    EXPECT_FALSE(writing_.exchange(true)) << "two writes at once";
    if (const auto* tokens = std::get_if<TokensFrame>(&frame)) {
      for (const TokensEvent& run : tokens->runs) {
        int64_t& next = next_[run.ordinal];
        EXPECT_EQ(run.first_index, next);
        next += static_cast<int64_t>(run.tokens.size());
      }
    }
    if (std::holds_alternative<FinishedEvent>(frame)) ++finished;
    writing_ = false;
    frames_.TryPush(0);
  }
  void Finish(const Status&) override { ended.set_value(); }
  void Cancel() override {}

  std::atomic<int> finished{0};
  std::promise<void> ended;

 private:
  Mailbox<int> frames_{4};
  std::thread thread_;
  std::atomic<bool> writing_{false};
  std::map<uint64_t, int64_t> next_;  // writes come one at a time
};

constexpr int kRouters = 3;
constexpr uint64_t kGenerations = 40;
constexpr int64_t kTokens = 25;

// Engine, routers and the watch at once, as in a leader; meant for the thread sanitizer.
TEST(SessionHubThreads, EveryGenerationArrivesWholeAndInOrder) {
  SystemClock clock;
  Mailbox<RouterCommand> inbox(4096);
  SessionHub hub({.epoch = 1}, inbox, clock);
  hub.SetReady();
  Wire wires[kRouters];
  std::vector<std::shared_ptr<Session>> sessions;
  for (int r = 0; r < kRouters; ++r) {
    const std::string token = *hub.Handshake(
        {.protocol_major = kProtocolMajor, .router_id = std::to_string(r), .incarnation = 1});
    sessions.push_back(*hub.Open(token, wires[r]));
    wires[r].Attach(sessions.back());
  }
  std::atomic<bool> stop{false};
  std::thread watch([&] {
    while (!stop) hub.Tick();
  });
  std::thread engine([&] {
    while (std::optional<RouterCommand> command = inbox.PopUntil(TimePoint::max())) {
      const auto* submit = std::get_if<SubmitCommand>(&command->what);
      if (submit == nullptr) continue;
      const uint64_t ordinal = submit->generation.ordinal;
      for (int64_t i = 0; i < kTokens; ++i) {
        std::vector<RouterEvent> events;
        events.push_back({command->router, TokensEvent{.ordinal = ordinal,
                                                       .first_index = i,
                                                       .tokens = std::vector<SampledToken>(1)}});
        if (i == kTokens - 1)
          events.push_back({command->router, FinishedEvent{.ordinal = ordinal}});
        hub.Deliver(std::move(events));
      }
      hub.OnCapacity(Capacity{.step = static_cast<int64_t>(ordinal)});
    }
  });
  std::vector<std::thread> routers;
  for (int r = 0; r < kRouters; ++r) {
    routers.emplace_back([&, r] {
      for (uint64_t ordinal = 1; ordinal <= kGenerations; ++ordinal) {
        Generation generation;
        generation.ordinal = ordinal;
        hub.OnSubmit(*sessions[r], std::move(generation), 0);
        hub.OnHeartbeat(*sessions[r]);
        hub.OnFinishedSet(*sessions[r], {.watermark = ordinal, .live = {ordinal}});
      }
    });
  }
  for (std::thread& router : routers) router.join();
  hub.StartDrain();  // closes the inbox behind the last end
  engine.join();
  stop = true;
  watch.join();
  hub.EndEpoch({.reason = "drain", .message = {}});
  for (int r = 0; r < kRouters; ++r) {
    EXPECT_EQ(wires[r].ended.get_future().wait_for(std::chrono::seconds(60)),
              std::future_status::ready);
    wires[r].Stop();
    EXPECT_EQ(wires[r].finished, static_cast<int>(kGenerations));
    hub.OnEnd(sessions[r], true);
  }
}

}  // namespace
}  // namespace levin
