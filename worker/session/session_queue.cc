#include "worker/session/session_queue.h"

#include <iterator>
#include <utility>

#include "common/base/check.h"

namespace levin {
namespace {

constexpr size_t kFrameBytes = 64;  // of a small frame, with room for its envelope
constexpr size_t kTokenBytes = 16;
constexpr size_t kTopLogprobBytes = 8;

size_t BytesOf(const OutFrame& frame) {
  const auto* error = std::get_if<ErrorEvent>(&frame);
  return kFrameBytes + (error != nullptr ? error->status.message().size() : 0);
}

size_t BytesOf(const TokensEvent& event) {
  size_t bytes = kTokenBytes * event.tokens.size();
  for (const SampledToken& token : event.tokens) bytes += kTopLogprobBytes * token.top.size();
  return bytes;
}

template <typename T>
std::optional<OutFrame> TakeLevel(std::optional<T>& level) {
  if (!level) return std::nullopt;
  OutFrame frame = *std::move(level);
  level.reset();
  return frame;
}

}  // namespace

void SessionQueue::Push(decltype(RouterEvent::what) event) {
  if (auto* tokens = std::get_if<TokensEvent>(&event)) return Add(std::move(*tokens));
  if (auto* freed = std::get_if<FreedAckEvent>(&event)) {
    pending_.freed = std::move(*freed);
    return;
  }
  if (auto* accepted = std::get_if<AcceptedEvent>(&event))
    pending_.accepted.emplace_back(*accepted);
  if (auto* finished = std::get_if<FinishedEvent>(&event)) pending_.ended.emplace_back(*finished);
  if (auto* error = std::get_if<ErrorEvent>(&event)) pending_.ended.emplace_back(std::move(*error));
  const bool accepted = std::holds_alternative<AcceptedEvent>(event);
  bytes_ += BytesOf((accepted ? pending_.accepted : pending_.ended).back());
}

void SessionQueue::Add(TokensEvent event) {
  pending_.token_bytes += BytesOf(event);
  bytes_ += BytesOf(event);
  const auto [known, first] =
      pending_.run_of.try_emplace(event.ordinal, pending_.tokens.runs.size());
  if (first) {
    pending_.tokens.runs.push_back(std::move(event));
    return;
  }
  TokensEvent& run = pending_.tokens.runs[known->second];
  CHECK_EQ(event.first_index, run.first_index + static_cast<int64_t>(run.tokens.size()));
  run.tokens.insert(run.tokens.end(), std::make_move_iterator(event.tokens.begin()),
                    std::make_move_iterator(event.tokens.end()));
}

std::optional<OutFrame> SessionQueue::Take() {
  if (std::optional<OutFrame> frame = TakeFrom(leaving_)) return frame;
  leaving_ = std::exchange(pending_, Round());
  return TakeFrom(leaving_);
}

std::optional<OutFrame> SessionQueue::TakeFrom(Round& round) {
  if (std::optional<OutFrame> frame = TakeFront(round.accepted)) return frame;
  if (!round.tokens.runs.empty()) {
    bytes_ -= std::exchange(round.token_bytes, 0);
    return std::exchange(round.tokens, TokensFrame());
  }
  if (std::optional<OutFrame> frame = TakeFront(round.ended)) return frame;
  if (std::optional<OutFrame> frame = TakeLevel(round.freed)) return frame;
  if (std::optional<OutFrame> frame = TakeLevel(round.capacity)) return frame;
  if (std::optional<OutFrame> frame = TakeLevel(round.heartbeat)) return frame;
  return TakeLevel(round.end);
}

std::optional<OutFrame> SessionQueue::TakeFront(std::deque<OutFrame>& frames) {
  if (frames.empty()) return std::nullopt;
  OutFrame frame = std::move(frames.front());
  frames.pop_front();
  bytes_ -= BytesOf(frame);
  return frame;
}

}  // namespace levin
