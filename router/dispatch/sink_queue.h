// One generation's events on their way to its sink: in order, one thread at a time, outside of
// every lock. Any thread may call any method. Bounded by the output of the generation: runs that
// wait behind a busy sink are merged.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <variant>
#include <vector>

#include "common/base/mutex.h"
#include "router/dispatch/engine_client.h"

namespace levin {

class SinkQueue final {
 public:
  explicit SinkQueue(std::unique_ptr<TokenSink> sink) : sink_(std::move(sink)) {}

  void PushAdmitted(int64_t cached_tokens) EXCLUDES(mutex_);
  void PushTokens(int64_t first_index, std::vector<SampledToken> tokens) EXCLUDES(mutex_);
  // The last event; what is pushed later is dropped.
  void PushDone(Status status, FinishReason reason, const Usage& usage) EXCLUDES(mutex_);

  // Hands over what is here and what comes meanwhile, unless another thread is doing so (which then
  // takes these too). The sink is destroyed behind OnDone.
  void Deliver() EXCLUDES(mutex_);

 private:
  struct Admitted {
    int64_t cached_tokens;
  };
  struct Tokens {
    int64_t first_index;
    std::vector<SampledToken> tokens;
  };
  struct Done {
    Status status;
    FinishReason reason;
    Usage usage;
  };
  using Event = std::variant<Admitted, Tokens, Done>;

  bool Next(Event& event) EXCLUDES(mutex_);

  Mutex mutex_;
  std::deque<Event> events_ GUARDED_BY(mutex_);
  bool delivering_ GUARDED_BY(mutex_) = false;
  bool closed_ GUARDED_BY(mutex_) = false;  // Done was pushed
  std::unique_ptr<TokenSink> sink_;         // touched by the delivering thread alone
};

}  // namespace levin
