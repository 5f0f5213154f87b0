// Hundreds of requests over a few slots, each slot and block full of NaN when its owner has left.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "tests/worker/model/tiny_network.h"

namespace levin::testing {
namespace {

constexpr int kSlots = 6;
constexpr int kRequests = 500;

struct Request {
  TestSequence sequence;
  std::vector<TokenId> prompt;
  size_t fed = 0;
  int wanted = 0;
  std::vector<TokenId> answer;
};

void Poison(ModelGroup& group, const TestSequence& sequence) {
  for (int r = 0; r < group.ranks(); ++r) {
    FillWithNan(group.model(r).states().Rows(sequence.slot, 1));
    for (const int32_t block : sequence.blocks) FillWithNan(group.model(r).kv().Rows(block, 1));
  }
}

std::vector<TokenId> Alone(ModelGroup& group, const Request& request) {
  const int64_t tokens = static_cast<int64_t>(request.prompt.size()) + request.wanted;
  group.ReleaseAll();
  TestSequence sequence = group.Sequence(0, tokens);
  const std::vector<float> logits =
      group.Run(MakeBatch(std::vector<Feed>{{&sequence, request.prompt, false}}));
  const std::span<const float> all(logits);
  return group.Greedy(sequence, ArgMax(all.last(group.config().vocab)), request.wanted);
}

TEST(SlotReuseTest, FiveHundredRequestsNeverSeeWhatTheLastOwnerLeft) {
  GroupOptions options;
  options.ranks = 2;
  options.slots = kSlots;
  options.blocks = kSlots * 2;
  ModelGroup group(Tiny(), options);
  ModelGroup solo(Tiny(), options);
  const int64_t vocab = group.config().vocab;
  std::mt19937 random(20261201);
  for (int r = 0; r < group.ranks(); ++r) {
    FillWithNan(group.model(r).states());
    FillWithNan(group.model(r).kv());
  }
  std::vector<std::optional<Request>> running(kSlots);
  std::vector<Request> finished;
  int started = 0;
  while (finished.size() < kRequests) {
    for (int slot = 0; slot < kSlots; ++slot) {
      if (running[slot] || started == kRequests || random() % 3 == 0) continue;
      Request request;
      // Two blocks of its own; half of the requests need but one.
      request.sequence = {slot, {slot * 2 + 1, slot * 2}, 0};
      const bool is_long = random() % 8 == 0;
      request.prompt = Prompt(started++, is_long ? 60 + random() % 10 : 1 + random() % 12);
      request.wanted = 1 + static_cast<int>(random() % 4);
      running[slot] = request;
    }
    std::vector<Feed> feeds;
    std::vector<Request*> rows;
    for (auto& request : running) {
      if (!request) continue;
      Feed feed{&request->sequence, {}, request->fed == request->prompt.size()};
      if (feed.stepwise) {
        feed.tokens = {request->answer.back()};
      } else {
        // Chunks end anywhere that the float32 mode allows: multiples of 64, or the end.
        const size_t count = std::min<size_t>(64, request->prompt.size() - request->fed);
        feed.tokens.assign(request->prompt.begin() + request->fed,
                           request->prompt.begin() + request->fed + count);
        request->fed += count;
      }
      rows.push_back(&*request);
      feeds.push_back(std::move(feed));
    }
    if (feeds.empty()) continue;
    const std::vector<float> logits = group.Run(MakeBatch(feeds));
    ASSERT_TRUE(std::none_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); }))
        << "after " << finished.size() << " requests";
    int64_t row_end = 0;
    for (size_t i = 0; i < feeds.size(); ++i) {
      row_end += static_cast<int64_t>(feeds[i].tokens.size());
      if (rows[i]->fed < rows[i]->prompt.size()) continue;
      const std::span<const float> all(logits);
      rows[i]->answer.push_back(ArgMax(all.subspan((row_end - 1) * vocab, vocab)));
    }
    for (auto& request : running) {
      if (!request || static_cast<int>(request->answer.size()) < request->wanted) continue;
      Poison(group, request->sequence);
      finished.push_back(*std::move(request));
      request.reset();
    }
  }
  for (const Request& request : finished) {
    ASSERT_EQ(Alone(solo, request), request.answer) << request.prompt.size() << " tokens";
  }
}

}  // namespace
}  // namespace levin::testing
