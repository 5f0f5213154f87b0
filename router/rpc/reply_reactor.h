// The server's side of one Generate or Chat stream: one write under way, what comes meanwhile is
// merged and waits, a client that does not read is cut off. Thin: events are ReplyEvents's.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "router/inference/generator.h"
#include "router/rpc/live_generations.h"
#include "router/rpc/reply_events.h"

namespace levin {

// A stream that ends before it began. Deletes itself.
template <typename Event>
class RefusedReply final : public grpc::ServerWriteReactor<Event> {
 public:
  explicit RefusedReply(const grpc::Status& status) { this->Finish(status); }
  void OnDone() override { delete this; }
};

// Held by gRPC until its OnDone, and by the sink on the engine's side.
template <typename Event>
class ReplyReactor final : public grpc::ServerWriteReactor<Event>,
                           public std::enable_shared_from_this<ReplyReactor<Event>> {
 public:
  struct Context {
    std::string request_id;
    std::unique_ptr<LiveGenerations::Entry> entry;
    std::function<void()> on_done;  // the stream is gone, its entry too
    grpc::CallbackServerContext* call = nullptr;
  };
  // The stream runs from now on; what is returned is gRPC's.
  static ReplyReactor* Start(Generator& generator, PreparedRequest request,
                             ReplyEvents<Event> events, Context context, const Clock& clock);

  void OnWriteDone(bool ok) override EXCLUDES(mutex_);
  void OnCancel() override EXCLUDES(mutex_);
  void OnDone() override;

 private:
  class Sink;

  ReplyReactor(ReplyEvents<Event> events, Context context, const Clock& clock)
      : events_(std::move(events)), context_(std::move(context)), clock_(clock) {}

  void Run(Generator& generator, PreparedRequest request) EXCLUDES(mutex_);
  void Take(std::vector<ReplyEvent> events) EXCLUDES(mutex_);
  void End(Status status) EXCLUDES(mutex_);
  void Pump() EXCLUDES(mutex_);
  void CancelReply() EXCLUDES(mutex_);
  bool ReadsTooSlowlyLocked() const REQUIRES(mutex_);

  ReplyEvents<Event> events_ GUARDED_BY(mutex_);
  Context context_;
  const Clock& clock_;

  Mutex mutex_;
  std::shared_ptr<Reply> reply_ GUARDED_BY(mutex_);
  std::deque<Event> queue_ GUARDED_BY(mutex_);
  size_t queued_bytes_ GUARDED_BY(mutex_) = 0;  // of the events that it was made of
  Event writing_event_;                         // in the write under way
  bool writing_ GUARDED_BY(mutex_) = false;
  TimePoint write_begun_ GUARDED_BY(mutex_);
  bool gone_ GUARDED_BY(mutex_) = false;  // nobody reads any more
  bool slow_ GUARDED_BY(mutex_) = false;
  bool ended_ GUARDED_BY(mutex_) = false;     // the sink had its last event
  bool finished_ GUARDED_BY(mutex_) = false;  // Finish was called
  Status status_ GUARDED_BY(mutex_);
  std::shared_ptr<ReplyReactor> self_;  // gRPC's reference
};

}  // namespace levin
