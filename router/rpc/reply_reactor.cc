#include "router/rpc/reply_reactor.h"

#include <utility>
#include <variant>

#include "router/rpc/call_status.h"

namespace levin {
namespace {

constexpr size_t kQueuedBytesMax = 16u << 20;
constexpr auto kStuckMax = std::chrono::seconds(60);

size_t BytesOf(const ReplyEvent& event) {
  return std::visit(
      [](const auto& what) -> size_t {
        size_t bytes = 64;
        if constexpr (requires { what.text; }) bytes += what.text.size();
        if constexpr (requires { what.fragment; }) bytes += what.fragment.size();
        if constexpr (requires { what.tokens; }) {
          for (const SampledToken& token : what.tokens) bytes += 8 + 24 * token.top.size();
        }
        return bytes;
      },
      event);
}

}  // namespace

template <typename Event>
class ReplyReactor<Event>::Sink final : public ReplySink {
 public:
  explicit Sink(std::shared_ptr<ReplyReactor> reactor) : reactor_(std::move(reactor)) {}
  void OnEvents(std::vector<ReplyEvent> events) override { reactor_->Take(std::move(events)); }

 private:
  const std::shared_ptr<ReplyReactor> reactor_;
};

template <typename Event>
ReplyReactor<Event>* ReplyReactor<Event>::Start(Generator& generator, PreparedRequest request,
                                                ReplyEvents<Event> events, Context context,
                                                const Clock& clock) {
  std::shared_ptr<ReplyReactor> reactor(
      new ReplyReactor(std::move(events), std::move(context), clock));
  reactor->self_ = reactor;
  reactor->Run(generator, std::move(request));
  return reactor.get();  // gRPC has not seen it yet, so it cannot be done with it
}

template <typename Event>
void ReplyReactor<Event>::Run(Generator& generator, PreparedRequest request) {
  auto reply =
      generator.Start(std::move(request), std::make_unique<Sink>(this->shared_from_this()));
  if (!reply) {
    End(std::move(reply).error());
    return Pump();
  }
  bool gone = false;
  {
    MutexLock lock(mutex_);
    if (ended_) return;
    reply_ = *std::move(reply);
    context_.entry->Attach(reply_);
    gone = gone_;
  }
  if (gone) CancelReply();
}

template <typename Event>
void ReplyReactor<Event>::Take(std::vector<ReplyEvent> events) {
  bool too_slow = false;
  {
    MutexLock lock(mutex_);
    for (const ReplyEvent& event : events) {
      if (const auto* failed = std::get_if<FailedEvent>(&event)) status_ = failed->status;
      ended_ |= std::holds_alternative<FailedEvent>(event) ||
                std::holds_alternative<CompletedEvent>(event);
      if (gone_) continue;
      queued_bytes_ += BytesOf(event);
      events_.Push(event, queue_);
    }
    too_slow = !gone_ && !slow_ && !ended_ && ReadsTooSlowlyLocked();
    slow_ |= too_slow;
  }
  if (too_slow) CancelReply();
  Pump();
}

template <typename Event>
bool ReplyReactor<Event>::ReadsTooSlowlyLocked() const {
  return queued_bytes_ > kQueuedBytesMax || (writing_ && clock_.Now() - write_begun_ > kStuckMax);
}

template <typename Event>
void ReplyReactor<Event>::End(Status status) {
  MutexLock lock(mutex_);
  ended_ = true;
  status_ = std::move(status);
}

// Starts the next write, or ends the stream when nothing is left to write.
template <typename Event>
void ReplyReactor<Event>::Pump() {
  bool finish = false;
  Status status;
  {
    MutexLock lock(mutex_);
    if (writing_ || finished_) return;
    if (gone_ || slow_) queue_.clear();
    if (queue_.empty()) {
      if (!ended_) return;
      finish = finished_ = true;
      status = slow_ ? Status(Code::kCancelled, "CANCELLED", "the client did not read its answer")
                     : status_;
      context_.entry.reset();  // its id is free before the client knows the end
    } else {
      writing_event_ = std::move(queue_.front());
      queue_.pop_front();
      if (queue_.empty()) queued_bytes_ = 0;
      writing_ = true;
      write_begun_ = clock_.Now();
    }
  }
  if (!finish) return this->StartWrite(&writing_event_);
  this->Finish(EndOfCall(*context_.call, status, context_.request_id));
}

template <typename Event>
void ReplyReactor<Event>::OnWriteDone(bool ok) {
  {
    MutexLock lock(mutex_);
    writing_ = false;
    gone_ |= !ok;
  }
  if (!ok) CancelReply();
  Pump();
}

template <typename Event>
void ReplyReactor<Event>::OnCancel() {
  {
    MutexLock lock(mutex_);
    gone_ = true;
  }
  CancelReply();
  Pump();
}

template <typename Event>
void ReplyReactor<Event>::CancelReply() {
  std::shared_ptr<Reply> reply;
  {
    MutexLock lock(mutex_);
    reply = reply_;
  }
  if (reply) reply->Cancel(CancelReason::kClientGone);
}

template <typename Event>
void ReplyReactor<Event>::OnDone() {
  const std::shared_ptr<ReplyReactor> self = std::move(self_);
  if (context_.on_done) context_.on_done();
}

template class ReplyReactor<v1::GenerateEvent>;
template class ReplyReactor<v1::ChatEvent>;

}  // namespace levin
