#include "router/dispatch/sink_queue.h"

#include <iterator>
#include <utility>

namespace levin {

void SinkQueue::PushAdmitted(int64_t cached_tokens) {
  MutexLock lock(mutex_);
  if (!closed_) events_.push_back(Admitted{cached_tokens});
}

void SinkQueue::PushTokens(int64_t first_index, std::vector<SampledToken> tokens) {
  MutexLock lock(mutex_);
  if (closed_) return;
  auto* last = events_.empty() ? nullptr : std::get_if<Tokens>(&events_.back());
  if (last == nullptr) {
    events_.push_back(Tokens{first_index, std::move(tokens)});
    return;
  }
  last->tokens.insert(last->tokens.end(), std::make_move_iterator(tokens.begin()),
                      std::make_move_iterator(tokens.end()));
}

void SinkQueue::PushDone(Status status, FinishReason reason, const Usage& usage) {
  MutexLock lock(mutex_);
  if (closed_) return;
  closed_ = true;
  events_.push_back(Done{std::move(status), reason, usage});
}

bool SinkQueue::Next(Event& event) {
  MutexLock lock(mutex_);
  if (events_.empty()) {
    delivering_ = false;
    return false;
  }
  event = std::move(events_.front());
  events_.pop_front();
  return true;
}

void SinkQueue::Deliver() {
  {
    MutexLock lock(mutex_);
    if (delivering_ || events_.empty()) return;
    delivering_ = true;
  }
  Event event;
  while (Next(event)) {
    if (const auto* admitted = std::get_if<Admitted>(&event)) {
      sink_->OnAdmitted(admitted->cached_tokens);
    } else if (const auto* tokens = std::get_if<Tokens>(&event)) {
      sink_->OnTokens(tokens->first_index, tokens->tokens);
    } else {
      auto& done = std::get<Done>(event);
      sink_->OnDone(std::move(done.status), done.reason, done.usage);
      sink_.reset();
    }
  }
}

}  // namespace levin
